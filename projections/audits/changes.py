"""The changes that each event of an audit makes for people who watch it; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.contracts.audit_events import (
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditOpinionGiven,
    AuditOpinionRejected,
)
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.model import ModelCallFailed, ModelFailed
from pmagent.events.event import Event
from pmagent.projections.audits.fold import counted
from pmagent.projections.views.audits import Audit, SourceName, changing
from pmagent.projections.views.jobs import Change

_READS: Final[dict[SourceName, str]] = {
    "repository": "cloned and surveyed", "report": "read", "images": "taken out of the report",
}


def changes(before: Audit, audit: Audit, event: Event) -> Iterator[Change]:
    """The changes that ``event`` made from ``before`` to ``audit``."""
    time = event.time
    if audit.over and not before.over:
        text = f"{audit.score:g}/5" if audit.score is not None else "; ".join(audit.reasons)
        yield Change(time, "", audit.state, text, audit.at)
        return
    for name, source in audit.sources.items():
        if source is before.sources[name]:
            continue
        if source.state == "running":
            yield Change(time, name, "running", _READS[name])
        else:
            yield Change(time, name, source.state, source.text, source.started)
    yield from _of_criteria(before, audit, event)


def _of_criteria(before: Audit, audit: Audit, event: Event) -> Iterator[Change]:
    data, time = event.data, event.time
    known = {one.id for one in audit.criteria}
    match data:
        case AuditEvidenceFound(dimension_id=name) if name in known:
            text = f"{counted(len(data.evidences), 'piece')}, {sum(one.found for one in data.evidences)} found"
            again = "compared with the repository: " if name in before.evidence else ""
            yield Change(time, name, "evidence", again + text)
        case AuditOpinionGiven(opinion=opinion) if opinion.criterion_id in known:
            again = ", second round" if data.round > 1 else ""
            panel = "the panel's " if data.panel else ""
            yield Change(time, opinion.criterion_id, "judged", f"{panel}{opinion.judge}: {opinion.score}{again}")
        case AuditOpinionRejected():
            text = f"{data.judge}'s answer {data.attempt} is no opinion: {data.objection}"
            yield Change(time, data.criterion_id, "retry", text)
        case ModelCallFailed():
            after = f", again in {data.retry_after_s:g} s or later" if data.retry_after_s else ""
            text = f"a call gave no reply: {data.code.replace('_', ' ')}{after if data.transient else ''}"
            yield Change(time, "model", "retry" if data.transient else "failed", text)
        case TimerRequested() if audit.wait is not before.wait:
            yield Change(time, "model", "waiting", audit.wait_text)
        case ModelFailed(text=text):
            yield Change(time, "model", "failed", f"a question gets no answer: {text}")
        case AuditCriterionRuled(dimension_id=name) if name in known:
            rules = changing(data)
            text = data.reason if data.final_score is None else f"{data.final_score}"
            text += f" ({', '.join(rules)})" if rules else ""
            yield Change(time, name, "not judged" if data.final_score is None else "ruled", text)
