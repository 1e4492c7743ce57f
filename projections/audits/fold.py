"""An audit's view after each of its events; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from contracts.audit_events import (
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRequested,
    AuditRequested,
    AuditSurveyed,
)
from contracts.effect import RequestRefused
from events.event import Event
from projections.audits.places import report_path
from projections.audits.view import Audit, Criterion, Given

replace = msgspec.structs.replace


def requested(event: Event, asked: AuditRequested, sum: str) -> Audit:
    """The view of an audit that has just been asked for."""
    about = asked.rubric.get("rubric_metadata")
    about = about if isinstance(about, dict) else {}
    return Audit(
        audit_id=asked.audit_id, requested=event.position, at=event.time, repo_url=asked.repo_url,
        pdf_path=asked.pdf_path, path=report_path(asked.output, asked.audit_id),
        engine="rules" if asked.engine == "rules" else f"{asked.engine} ({asked.model})",
        vision_model=asked.vision_model, rubric_name=str(about.get("rubric_name", "")),
        rubric_version=str(about.get("version", "")), rubric_source=asked.rubric_source,
        criteria=_criteria(asked.rubric.get("dimensions")),
        position=event.position, sum=sum, updated=event.time,
    )  # fmt: skip


def _criteria(dimensions: Any) -> list[Criterion]:
    """The criteria of a rubric that nobody may have checked: such an audit fails, and its job says so."""
    listed = dimensions if isinstance(dimensions, list) else []
    return [Criterion(str(one.get("id")), str(one.get("name"))) for one in listed if isinstance(one, dict)]


def evolved(audit: Audit, event: Event, sum: str) -> Audit:
    """The view after an event of the audit, which is not over."""
    handler = HANDLERS[type(event.data)]
    after = handler(audit, event, event.data)
    return replace(after, position=event.position, sum=sum, updated=event.time)


def _works(audit: Audit, _: Event, __: Any) -> Audit:
    return replace(audit, doing="working")


def _surveyed(audit: Audit, _: Event, surveyed: AuditSurveyed) -> Audit:
    return replace(audit, commit=surveyed.survey.commit)


def _read(audit: Audit, _: Event, read: AuditPdfRead) -> Audit:
    return replace(audit, report_sha256=read.reading.sha256)


def _found(audit: Audit, _: Event, found: AuditEvidenceFound) -> Audit:
    return replace(audit, doing="working", evidence={**audit.evidence, found.dimension_id: found.evidences})


def _given(audit: Audit, _: Event, given: AuditOpinionGiven) -> Audit:
    return replace(audit, opinions=[*audit.opinions, Given(given.round, given.opinion)])


def _ruled(audit: Audit, _: Event, ruled: AuditCriterionRuled) -> Audit:
    return replace(audit, rulings={**audit.rulings, ruled.dimension_id: ruled})


def _concluded(audit: Audit, event: Event, concluded: AuditConcluded) -> Audit:
    if concluded.request != audit.requested:
        return audit
    return replace(audit, doing="over", ended=event.time, concluded=concluded)


def _failed(audit: Audit, event: Event, failed: AuditFailed) -> Audit:
    """An end that is another request's, which asked for the same id, is none of this audit's."""
    if failed.request != audit.requested:
        return audit
    return replace(audit, doing="over", ended=event.time, failed=failed)


def _unanswered(audit: Audit, event: Event, refused: RequestRefused) -> Audit:
    """The engine refuses the request itself, where the auditor is halted."""
    if refused.request != audit.requested:
        return audit
    return replace(audit, doing="over", ended=event.time, refused=f"{refused.name} is {refused.reason}")


HANDLERS: Final[dict[type[msgspec.Struct], Callable[[Audit, Event, Any], Audit]]] = {
    AuditCloneRequested: _works,
    AuditPdfRequested: _works,
    AuditPicturesRequested: _works,
    AuditSurveyed: _surveyed,
    AuditPdfRead: _read,
    AuditEvidenceFound: _found,
    AuditOpinionGiven: _given,
    AuditCriterionRuled: _ruled,
    AuditConcluded: _concluded,
    AuditFailed: _failed,
    RequestRefused: _unanswered,
}
"""What an audit's view hears of, after its request."""
