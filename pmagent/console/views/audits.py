"""The pages Audits: all of them, and one with its scores, its opinions and the evidence beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from contracts.audit_events import REASON_CHARS_MAX
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
    twin,
)
from pmagent.console.jobs.audit import AuditPage, audit_page, file_name, report_of
from pmagent.console.jobs.desk import JobsAtHand, jobs_of, whole_id
from pmagent.console.jobs.run import address
from pmagent.jobs.catalogue import Entry
from pmagent.jobs.kinds import AUDITS

OPEN_LOOKED_AT: Final = 5
"""Of so many open audits the list says what they do, the newest."""
LIVE_LIST: Final = ("audit.", "request.refused")
LIVE_AUDIT: Final = ("audit.", "model.call_failed", "request.refused")


class Row(msgspec.Struct, frozen=True):
    """An audit in the list. ``word``: how it stands."""

    entry: Entry
    word: str
    repository: str
    took: str
    score: str
    reason: str


async def show(request: Request) -> Response:
    """``GET /audits``."""
    asked = asked_of(request.query_params, AUDITS.states)
    listing = await listed(request, AUDITS, asked)
    rows = await desk_of(request).read(_rows, jobs_of(request), listing.entries)
    newest, older = pages("/audits", asked, listing)
    return await desk_of(request).page(
        request, "audits.html", title="Audits", section="audits", live=LIVE_LIST,
        command=twin(AUDITS, asked), asked=asked, states=choices(AUDITS.states),
        rows=rows, listing=listing, newest=newest, older=older, full=LISTED,
    )  # fmt: skip


def _rows(jobs: JobsAtHand, entries: Sequence[Entry]) -> list[Row]:
    """The list's rows; of open audits, as far as there are few, what they do. Raises CorruptLog."""
    rows, looked = [], 0
    for entry in entries:
        word = entry.state
        ending = entry.ending
        if ending is None and looked < OPEN_LOOKED_AT:
            looked += 1
            with jobs.audits.story(entry.job_id) as (story, _):
                word = story.view.word if story.view.requested == entry.position else word
        score = f"{ending.score:g}/5" if ending is not None and ending.score is not None else ""
        reason = shorten("; ".join(entry.reasons), 200)
        rows.append(Row(entry, word, shorten(entry.title, 160), took(entry), score, reason))
    return rows


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
    return await cancelled(request, AUDITS, "audit_id")


routes: list[BaseRoute] = [
    Route("/audits", show),
    Route("/audits/{audit_id}", one),
    Route("/audits/{audit_id}/report.{ending}", report),
    Route("/audits/{audit_id}/cancel", cancel, methods=["POST"]),
]
