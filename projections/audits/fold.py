"""An audit's view after each of its events; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pmagent.contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
)
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.model import ModelCallFailed, ModelReplied
from pmagent.events.event import Event
from pmagent.projections.audits.paths import report_path
from pmagent.projections.views import jobs
from pmagent.projections.views.audits import Audit, Criterion, Given, Source, SourceName, Wait
from pmagent.projections.views.jobs import End

replace = msgspec.structs.replace


def requested(event: Event, sum: str) -> Audit:
    """The view of an audit that has just been asked for."""
    asked: AuditRequested = event.data
    about = asked.rubric.get("rubric_metadata")
    about = about if isinstance(about, dict) else {}
    return Audit(
        id=asked.audit_id, asked=replace(asked, rubric={}), path=report_path(asked.output, asked.audit_id),
        rubric_name=str(about.get("rubric_name", "")), rubric_version=str(about.get("version", "")),
        criteria=_criteria(asked.rubric.get("dimensions")), **jobs.begun(event, sum),
    )  # fmt: skip


def _criteria(dimensions: Any) -> list[Criterion]:
    """The criteria of a rubric that nobody may have checked: such an audit fails, and its job says so."""
    listed = dimensions if isinstance(dimensions, list) else []
    return [
        Criterion(str(one.get("id")), str(one.get("name", one.get("id"))), str(one.get("target_artifact", "")))
        for one in listed
        if isinstance(one, dict)
    ]


def evolved(audit: Audit, event: Event, sum: str) -> Audit:
    """The view after an event of the audit, which is not over; ``audit`` itself where the event changes nothing."""
    cls = type(event.data)
    if cls in HANDLERS:
        after = HANDLERS[cls](audit, event, event.data)
        return replace(after, position=event.position, sum=sum, updated=event.time)
    shown = _SHOWN.get(cls)
    return audit if shown is None else shown(audit, event, event.data)


def end_of(data: Any) -> End:
    """How an audit ended with this payload."""
    if isinstance(data, AuditConcluded):
        return End("concluded", score=data.overall_score)
    if isinstance(data, AuditFailed):
        return End("cancelled" if data.code == "cancelled" else "failed", data.code, data.reasons, data.mend)
    return End("refused", "halted", [f"{data.name} is {data.reason}"])  # by the engine: the auditor is halted


# --- sources -------------------------------------------------------------------------------------------------------


def _reads(name: SourceName) -> Callable[[Audit, Event, Any], Audit]:
    def fold(audit: Audit, event: Event, _: Any) -> Audit:
        asked = replace(_collects(audit), requests={**audit.requests, event.position: name})
        return _source(asked, name, state="running", started=event.time)

    return fold


def _collects(audit: Audit) -> Audit:
    return replace(audit, doing="collecting") if audit.doing == "asked" else audit


def _source(audit: Audit, name: SourceName, **changes: Any) -> Audit:
    return replace(audit, sources={**audit.sources, name: replace(audit.sources[name], **changes)})


def _done(audit: Audit, event: Event, name: SourceName, *details: str) -> Audit:
    return _source(audit, name, state="done", text=", ".join(details), ended=event.time)


def _surveyed(audit: Audit, event: Event, surveyed: AuditSurveyed) -> Audit:
    survey = surveyed.survey
    python = survey.examined.get("python_files")
    return _done(
        replace(audit, commit=survey.commit), event, "repository",
        f"commit {survey.commit[:12]}", counted(survey.file_count, "file"),
        *([counted(python, "Python file")] if python is not None else []),
        counted(survey.history.total, "commit"), counted(len(survey.graphs), "graph"),
    )  # fmt: skip


def _read(audit: Audit, event: Event, read: AuditPdfRead) -> Audit:
    reading = read.reading
    return _done(
        replace(audit, report_sha256=reading.sha256), event, "report",
        counted(reading.pages, "page"), counted(len(reading.headings), "heading"),
        f"{counted(len(reading.claims), 'path')} named",
        *([f"{reading.ocr_pages} read by recognition"] if reading.ocr_pages else []),
    )  # fmt: skip


def _pictures(audit: Audit, event: Event, read: AuditPicturesRead) -> Audit:
    return _done(audit, event, "images", counted(read.reading.count, "image"))


def _source_failed(audit: Audit, event: Event, failed: AuditSourceFailed) -> Audit:
    name = audit.requests.get(failed.request)
    return audit if name is None else _source(audit, name, state="failed", text=failed.text, ended=event.time)


def counted(count: int, noun: str) -> str:
    """So many of them, for people."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


# --- criteria ------------------------------------------------------------------------------------------------------


def _found(audit: Audit, _: Event, found: AuditEvidenceFound) -> Audit:
    return replace(_collects(audit), evidence={**audit.evidence, found.dimension_id: found.evidences})


def _given(audit: Audit, _: Event, given: AuditOpinionGiven) -> Audit:
    if given.panel:
        return replace(audit, doing="judging")
    return replace(audit, doing="judging", opinions=[*audit.opinions, Given(given.round, given.opinion)])


def _rejected(audit: Audit, _: Event, rejected: AuditOpinionRejected) -> Audit:
    return replace(audit, rejected=[*audit.rejected, rejected])


def _replied(audit: Audit, _: Event, replied: ModelReplied) -> Audit:
    used, usage, price = audit.used, replied.usage, audit.asked.price
    cost = 0.0
    if price is not None:
        cost = (usage.input_tokens * price.input_usd + usage.output_tokens * price.output_usd) / 1_000_000
    return replace(audit, wait=None, used=replace(
        used, replied=used.replied + 1, input_tokens=used.input_tokens + usage.input_tokens,
        output_tokens=used.output_tokens + usage.output_tokens, cost_usd=used.cost_usd + cost,
    ))  # fmt: skip


def _call_failed(audit: Audit, event: Event, failed: ModelCallFailed) -> Audit:
    wait = Wait(failed.code, audit.wait.since if audit.wait else event.time) if failed.transient else audit.wait
    return replace(audit, wait=wait, used=replace(audit.used, failed=audit.used.failed + 1))


def _timed(audit: Audit, _: Event, timer: TimerRequested) -> Audit:
    """A pause of the gateway's is a timer of that name."""
    if audit.wait is None or not timer.name.startswith("pause "):
        return audit
    return replace(audit, wait=replace(audit.wait, until=timer.at))


def _ruled(audit: Audit, _: Event, ruled: AuditCriterionRuled) -> Audit:
    return replace(audit, doing="ruling", rulings={**audit.rulings, ruled.dimension_id: ruled})


# --- the end -------------------------------------------------------------------------------------------------------


def _ended(audit: Audit, event: Event, data: AuditConcluded | AuditFailed | RequestRefused) -> Audit:
    """An end that is another request's, which asked for the same id, is none of this audit's. A reading that was taken
    back has no other end."""
    if data.request != audit.requested:
        return audit
    sources: dict[SourceName, Source] = {
        name: replace(one, state="waiting", ended=event.time) if one.state == "running" else one
        for name, one in audit.sources.items()
    }
    return replace(
        jobs.ended(audit, event, end_of(data)),
        wait=None,
        sources=sources,
        concluded=data if isinstance(data, AuditConcluded) else None,
        stopped_by=event.causation if isinstance(data, AuditFailed) else 0,
    )


HANDLERS: Final[dict[type[msgspec.Struct], Callable[[Audit, Event, Any], Audit]]] = {
    AuditCloneRequested: _reads("repository"),
    AuditPdfRequested: _reads("report"),
    AuditPicturesRequested: _reads("images"),
    AuditSurveyed: _surveyed,
    AuditPdfRead: _read,
    AuditEvidenceFound: _found,
    AuditOpinionGiven: _given,
    AuditCriterionRuled: _ruled,
    AuditConcluded: _ended,
    AuditFailed: _ended,
    RequestRefused: _ended,
}
"""The events that change an audit's documents, after its request."""
_SHOWN: Final[dict[type[msgspec.Struct], Callable[[Audit, Event, Any], Audit]]] = {
    AuditPicturesRead: _pictures,
    AuditSourceFailed: _source_failed,
    AuditOpinionRejected: _rejected,
    ModelReplied: _replied,
    ModelCallFailed: _call_failed,
    TimerRequested: _timed,
}
"""The events that only screens and pages show, but for those of ``COUNTED``."""
COUNTED: Final = (ModelReplied, ModelCallFailed)
"""The events that a report counts."""
