"""The pages Audits: all of them, and one with its scores, its opinions and the evidence beside them."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from contracts.audit_events import REASON_CHARS_MAX
from events.errors import NotFound
from pmagent.client import new_request
from pmagent.console import downloads
from pmagent.console.desk import desk_of
from pmagent.console.jobs.asking import (
    TRACE,
    Listed,
    cancelled,
    elsewhere,
    list_page,
    read_of,
)
from pmagent.console.jobs.audit import AuditPage, audit_page, file_name, report_of
from pmagent.console.jobs.desk import JobsAtHand, whole_id
from pmagent.console.jobs.run import address
from pmagent.jobs.kinds import AUDITS

LIVE_AUDIT: Final = ("audit.", "model.call_failed", "request.refused")
LIST: Final = Listed(
    AUDITS, ("audit.", "request.refused"), "Score", "Repository", "pmagent audit REPO_URL PDF",
    ended=lambda end: f"{end.score:g}/5" if end.score is not None else "",
    so_far=lambda _: "",
)


async def show(request: Request) -> Response:
    """``GET /audits``."""
    return await list_page(request, LIST)


async def one(request: Request) -> Response:
    """``GET /audits/{audit_id}``; ``criterion``: only this one, with all of its evidence."""
    given = request.path_params["audit_id"]
    audit_id = await whole_id(request, AUDITS, given)
    if audit_id != given:
        return elsewhere(request, f"/audits/{audit_id}")
    only = request.query_params.get("criterion", "")

    def read(jobs: JobsAtHand) -> AuditPage:
        with jobs.audits.story(audit_id) as (story, log):
            return audit_page(story, log, only)

    page = await read_of(request, read)
    if only and not page.parts:
        raise NotFound(f"the rubric of audit {audit_id} has no criterion {only[:100]!r}", "the audit's page lists them")
    answer = await desk_of(request).page(
        request, "audit.html", title=f"Audit {audit_id[:8]}", section="audits",
        live=() if page.audit.over else LIVE_AUDIT, command=("pmagent", "audits", audit_id), page=page,
        audit=page.audit, request_id=new_request(AUDITS.cancel), reason_max=REASON_CHARS_MAX, address=address,
    )  # fmt: skip
    answer.headers[TRACE] = audit_id
    return answer


async def report(request: Request) -> Response:
    """``GET /audits/{audit_id}/report.md`` and ``report.json``: the bytes that the projection makes of the log."""
    given, ending = request.path_params["audit_id"], f".{request.path_params['ending']}"
    audit_id = await whole_id(request, AUDITS, given)
    if audit_id != given:
        return elsewhere(request, f"/audits/{audit_id}/report{ending}")

    def read(jobs: JobsAtHand) -> tuple[str, bytes | None]:
        with jobs.audits.story(audit_id) as (story, log):
            return file_name(story.view, ending), report_of(story, log).get(ending)

    name, content = await read_of(request, read)
    if content is None:
        raise NotFound(f"audit {audit_id} has no such report", "its page says how it stands")
    answer = downloads.whole(name, content)
    answer.headers[TRACE] = audit_id
    return answer


async def cancel(request: Request) -> Response:
    """``POST /audits/{audit_id}/cancel``: ``reason``, and the request's id, by which asking twice is asking once."""
    return await cancelled(request, AUDITS)


routes: list[BaseRoute] = [
    Route("/audits", show),
    Route("/audits/{audit_id}", one),
    Route("/audits/{audit_id}/report.{ending}", report),
    Route("/audits/{audit_id}/cancel", cancel, methods=["POST"]),
]
