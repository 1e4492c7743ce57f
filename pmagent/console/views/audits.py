"""The pages Audits: all of them, and one with its scores, its opinions and the evidence beside them."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from contracts.audit_events import REASON_CHARS_MAX, AuditConcluded
from events.errors import NotFound
from pmagent.clean import shorten
from pmagent.client import new_request
from pmagent.console import downloads
from pmagent.console.desk import desk_of
from pmagent.console.jobs.asking import (
    LISTED,
    TRACE,
    asked_of,
    cancelled,
    choices,
    elsewhere,
    listed,
    pages,
    read_of,
    took,
)
from pmagent.console.jobs.audit import AuditPage, audit_page, file_name, report_of
from pmagent.console.jobs.desk import JobsAtHand, whole_id
from pmagent.console.jobs.run import address
from pmagent.jobs.catalogue import Entry
from pmagent.jobs.kinds import AUDITS

STATES: Final = ("open", "concluded", "failed", "cancelled", "refused")
LIVE_LIST: Final = ("audit.requested", "audit.concluded", "audit.failed", "request.refused")
LIVE_AUDIT: Final = ("audit.", "model.call_failed", "request.refused")


class Row(msgspec.Struct, frozen=True):
    """An audit in the list."""

    entry: Entry
    repository: str
    took: str
    score: str
    reason: str


async def show(request: Request) -> Response:
    """``GET /audits``."""
    asked = asked_of(request.query_params, STATES)
    listing = await listed(request, AUDITS, asked)
    newest, older = pages("/audits", asked, listing)
    return await desk_of(request).page(
        request, "audits.html", title="Audits", section="audits", live=LIVE_LIST,
        command=("pmagent", "audits", "-n", str(LISTED)), asked=asked, states=choices(STATES),
        rows=[_row(entry) for entry in listing.entries], listing=listing, newest=newest, older=older, full=LISTED,
    )  # fmt: skip


def _row(entry: Entry) -> Row:
    data = entry.ending.data if entry.ending is not None else None
    score = f"{data.overall_score:g}/5" if isinstance(data, AuditConcluded) else ""
    return Row(entry, shorten(entry.title, 160), took(entry), score, shorten("; ".join(entry.reasons), 200))


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
        live=() if page.audit.doing == "over" else LIVE_AUDIT, command=("pmagent", "audits", audit_id), page=page,
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
            return file_name(story.audit, ending), report_of(story, log).get(ending)

    name, content = await read_of(request, read)
    if content is None:
        raise NotFound(f"audit {audit_id} has no such report", "its page says how it stands")
    answer = downloads.whole(name, content)
    answer.headers[TRACE] = audit_id
    return answer


async def cancel(request: Request) -> Response:
    """``POST /audits/{audit_id}/cancel``: ``reason``, and the request's id, by which asking twice is asking once."""
    return await cancelled(request, AUDITS, "audit_id")


routes: list[BaseRoute] = [
    Route("/audits", show),
    Route("/audits/{audit_id}", one),
    Route("/audits/{audit_id}/report.{ending}", report),
    Route("/audits/{audit_id}/cancel", cancel, methods=["POST"]),
]
