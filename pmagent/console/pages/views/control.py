"""The operators' controls: the stop switch, the PLA's mode, the device armed or not, the end of a session.

Stopping is everybody's: who may only look pauses and disarms as well (docs/design.md §18.2). All else needs the
role approve.

Each POST is one operation of the daemon, and answers 303 to the page it came from, or 409 with the reasons and what
would mend them. Asking for one twice, as by a double click, sets the same thing; the end of a session names the
session, so that ending it twice is one request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.console.pages.views.now import CLASSES, now
from pmagent.contracts.pla import MODES

REASON_CHARS_MAX: Final = 500
STOPPING: Final = ("control.pause", "pla.disarm")
"""Open to every operator."""
PATIENCE_SECONDS: Final = 110.0
"""So long an answer may take: up to 35 s until the surfaces have been read since a start, 60 s for the device."""

_SESSION: Final = re.compile(r"pla-[0-9a-f]{32}")
_BACK: Final = re.compile(r"/approvals/[A-Za-z0-9_-]{1,64}")


def _reasoned(operation: str, failed: str) -> Callable[[Request], Awaitable[Response]]:
    """POST ``reason``: ask for ``operation``; see ``_set``."""

    async def post(request: Request) -> Response:
        return await _set(request, operation, failed, reason=_reason(request))

    return post


async def mode(request: Request) -> Response:
    """POST ``mode``, ``action_class``, ``reason``: the PLA's mode, one step up or any down."""
    form = form_of(request)
    wanted, action_class = form.get("mode", ""), form.get("action_class") or CLASSES[0]
    if wanted not in MODES or action_class not in CLASSES:
        raise HTTPException(400, f"There are the modes {', '.join(MODES)}, and the classes {', '.join(CLASSES)}.")
    return await _set(
        request, "pla.mode", f"The mode is not {wanted}", mode=wanted, action_class=action_class,
        reason=_reason(request),
    )  # fmt: skip


async def arm(request: Request) -> Response:
    """POST: arm the device."""
    return await _set(request, "pla.arm", "The device is not armed")


async def end(request: Request) -> Response:
    """POST ``session``: end the PLA's session of this id. Raises HTTPException (400) without one."""
    session = form_of(request).get("session", "")
    if not _SESSION.fullmatch(session):
        raise HTTPException(400, "It is not said which session is to be ended.")
    about = sha256(f"{visitor_of(request).operator}|{session}".encode()).hexdigest()[:16]
    return await _set(request, "pla.end", "The session is not ended", id=f"pla.end-{session}-{about}")


async def _set(request: Request, operation: str, failed: str, id: str = "", **arguments: Any) -> Response:
    """Ask for ``operation``, as the request ``id`` ("": a new one); ``failed`` says what it comes to when that is
    refused. Raises HTTPException (403), what asking raises."""
    context, visitor, form = context_of(request), visitor_of(request), form_of(request)
    if visitor.role != "approve" and operation not in STOPPING:
        raise HTTPException(403, "Your role is view: you may look and stop, and set nothing else.")
    answer = await context.ask(operation, visitor, request=id, seconds=PATIENCE_SECONDS, **arguments)
    if answer.exit_code == 0:
        back = form.get("back", "")
        return RedirectResponse(back if _BACK.fullmatch(back) else "/", status_code=303)
    document = answer.document
    twin = [*_TWINS[operation], *([arguments["mode"]] if "mode" in arguments else [])]
    return await context.page(
        request, "not_done.html", title=failed, section="now", status=409, reasons=document.get("reasons", []),
        mends=list(dict.fromkeys(document.get("mend", []))), command=twin,
    )  # fmt: skip


def _reason(request: Request) -> str:
    """Raises HTTPException (400)."""
    reason = form_of(request).get("reason", "").strip()
    if len(reason) > REASON_CHARS_MAX:
        raise HTTPException(400, f"A reason has at most {REASON_CHARS_MAX} characters; this one has {len(reason)}.")
    return reason


_TWINS: Final = {
    "control.pause": ("pmagent", "pause"),
    "control.resume": ("pmagent", "resume"),
    "pla.mode": ("pmagent", "pla", "mode"),
    "pla.arm": ("pmagent", "pla", "arm"),
    "pla.disarm": ("pmagent", "pla", "disarm"),
    "pla.end": ("pmagent", "pla", "end"),
}


_POSTS: Final = {
    "pause": _reasoned("control.pause", "Effects are not paused"),
    "resume": _reasoned("control.resume", "Effects stay paused"),
    "disarm": _reasoned("pla.disarm", "It is not known that the device is disarmed"),
    "mode": mode, "arm": arm, "end": end,
}  # fmt: skip

routes: list[BaseRoute] = [
    *(Route(f"/control/{name}", view, methods=["POST"]) for name, view in _POSTS.items()),
    # A page that answers a POST may be looked at again.
    *(Route(f"/control/{name}", now, methods=["GET"]) for name in _POSTS),
]
