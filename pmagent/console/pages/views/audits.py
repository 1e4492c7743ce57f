"""The pages Audits: all of them, and one with its scores, its opinions and the evidence beside them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import address
from pmagent.console.pages.context import context_of
from pmagent.console.pages.jobs.audit import audit_page, file_name, report_of
from pmagent.console.pages.jobs.listing import both_of, job_routes, story_of
from pmagent.contracts.audit_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound
from pmagent.jobs.history import Jobs
from pmagent.jobs.kinds import AUDITS
from pmagent.jobs.story import AuditStory
from pmagent.projections.audits.comparison import compared
from pmagent.projections.audits.rebuilt import report_of as rebuilt_report
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


async def compare(request: Request) -> Response:
    """``GET /audits/compare?a=&b=``: the reports of two audits held against each other; ``audit`` twice is ``a`` and
    ``b``. Raises BadAddress, NotFound, CorruptLog."""
    ids = await both_of(request, AUDITS)
    reports = [await story_of(request, AUDITS, one, lambda story, _: story.view) for one in ids]
    for view in reports:
        if view.concluded is None:
            raise NotFound(f"audit {view.id[:8]} is {view.word}: it has no report", "compare two that have concluded")
    found = compared(*(rebuilt_report(view) for view in reports))
    return await context_of(request).page(
        request, "audit_compare.html", title=f"Audits {ids[0][:8]} and {ids[1][:8]}", section="audits", found=found,
        address=address, command=("pmagent", "audit", "diff", *ids),
    )  # fmt: skip


routes: list[BaseRoute] = [
    Route("/audits/compare", compare, methods=["GET"]),
    *job_routes(AUDITS, LIVE_AUDITS, {"": one, "/report.{ending}": report}),
]
