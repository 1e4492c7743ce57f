"""The pages of sessions: those of the PLA, with their logs checked, and those of the OA."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import number, one_of
from pmagent.console.pages.approvals.presentation import worded
from pmagent.console.pages.context import context_of
from pmagent.console.pages.reading import oa_story, pla_story
from pmagent.console.pages.reading.session_list import Kind, listed
from pmagent.events.errors import NotFound
from pmagent.log.summaries import summary
from pmagent.projections.sessions.paths import log_path

OA: Final = "oa-session-"


async def show_list(request: Request) -> Response:
    """``GET /sessions?kind=pla|oa&before=``: sessions, newest first."""
    context = context_of(request)
    kind: Kind = "oa" if one_of(request, "kind", ("pla", "oa")) == "oa" else "pla"
    before = number(request, "before", least=1)
    end = getattr(request.state, "position", 0) or context.position()
    try:
        found = await context.read(listed, context.layout, kind, before, end)
    except NotFound:
        found = None
    return await context.page(
        request, "sessions.html", title="Sessions", section="sessions", live=(f"{kind}.session_", f"{kind}.boot_"),
        command=["pmagent", "log", "tail", "-n", "100", "--type", f"{kind}.session_*"],
        kind=kind, listing=found, before=before,
    )


async def show(request: Request) -> Response:
    """``GET /sessions/{session_id}``; ``?entry=`` with which entry of its log the page begins. Raises NotFound,
    CorruptLog."""
    context, session_id = context_of(request), str(request.path_params["session_id"])
    if session_id.startswith(OA):
        found = await context.read(oa_story.story, context.layout, session_id)
        return await context.page(
            request, "session_oa.html", title="Session of the OA", section="sessions", live=("oa.",), story=found,
            summary=summary, command=["pmagent", "log", "why", str(found.began.position)],
        )
    first = number(request, "entry", 1, least=1)
    page = await context.read(pla_story.story, context.layout, session_id, first)
    return await context.page(
        request, "session.html", title="Session of the PLA", section="sessions", live=("pla.",), story=page,
        worded=worded, told=page.told, frames=pla_story.used_frames(page.told), entries_shown=pla_story.ENTRIES_SHOWN,
        command=["pmagent", "pla", "verify-log", log_path(session_id)],
    )


async def download(request: Request) -> Response:
    """``GET /sessions/{session_id}/log``: the session log as it lies there. Raises NotFound, SessionLogUnreadable."""
    context, session_id = context_of(request), str(request.path_params["session_id"])
    content = await context.read(pla_story.log_of, context.layout, session_id)
    if content is None:
        raise NotFound(f"there is no session log of {session_id[:64]!r}", "pmagent rebuild writes what the log says")
    return downloads.whole(f"{session_id}.jsonl", content)


routes: list[BaseRoute] = [
    Route("/sessions", show_list), Route("/sessions/{session_id}", show), Route("/sessions/{session_id}/log", download),
]  # fmt: skip
