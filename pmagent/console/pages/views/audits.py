"""The pages Audits: all of them, and one with its scores, its opinions and the evidence beside them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import address
from pmagent.console.pages.context import context_of
from pmagent.console.pages.jobs.audit import audit_page, file_name, report_of
from pmagent.console.pages.jobs.listing import job_routes, story_of
from pmagent.contracts.audit_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound
from pmagent.jobs.history import Jobs
from pmagent.jobs.kinds import AUDITS
from pmagent.jobs.story import AuditStory
from pmagent.service.client import new_request

LIVE_AUDIT: Final = ("audit.", "model.call_failed", "request.refused")
LIVE_AUDITS: Final = ("audit.", "request.refused")


async def one(request: Request, audit_id: str) -> Response:
    """``GET /audits/{audit_id}``; ``criterion``: only this one, with all of its evidence."""
    only = request.query_params.get("criterion", "")
    page = await story_of(request, AUDITS, audit_id, lambda story, log: audit_page(story, log, only))
    if only and not page.parts:
        raise NotFound(f"the rubric of audit {audit_id} has no criterion {only[:100]!r}", "the audit's page lists them")
    return await context_of(request).page(
        request, "audit.html", title=f"Audit {audit_id[:8]}", section="audits",
        live=() if page.audit.over else LIVE_AUDIT, command=("pmagent", "audits", audit_id), page=page,
        audit=page.audit, request_id=new_request(AUDITS.cancel), reason_max=REASON_CHARS_MAX, address=address,
    )  # fmt: skip


async def report(request: Request, audit_id: str) -> Response:
    """``GET /audits/{audit_id}/report.md`` and ``report.json``: the bytes that the projection makes of the log."""
    ending = f".{request.path_params['ending']}"

    def read(story: AuditStory, log: Jobs) -> tuple[str, bytes | None]:
        return file_name(story.view, ending), report_of(story, log).get(ending)

    name, content = await story_of(request, AUDITS, audit_id, read)
    if content is None:
        raise NotFound(f"audit {audit_id} has no such report", "its page says how it stands")
    return downloads.whole(name, content)


routes: list[BaseRoute] = job_routes(AUDITS, LIVE_AUDITS, {"": one, "/report.{ending}": report})
