"""An audit in the shape in which every service tells of its jobs; pure."""

from __future__ import annotations

from typing import Final

from pmagent.contracts.jobs import JobState
from pmagent.projections.audits.paths import DOCUMENT, MARKDOWN
from pmagent.projections.views.audits import Audit
from pmagent.projections.views.jobs import job_document

SERVICE: Final = "pmagent-audit"
_JUDGES: Final = 3


def job(audit: Audit) -> bytes:
    """``jobs/<audit_id>.json``. A failed audit names what was collected, which stays in the log."""
    result = None
    if audit.concluded is not None:
        scores = [one.final_score for one in audit.rulings.values()]
        result = {
            "overall_score": audit.concluded.overall_score,
            "judged": sum(score is not None for score in scores),
            "not_judged": scores.count(None),
            "report": audit.path + MARKDOWN,
            "document": audit.path + DOCUMENT,
        }
    detail = f"{'; '.join(audit.reasons)}; collected: {_collected(audit)}"
    return job_document(audit, SERVICE, _state(audit), _progress(audit), _message(audit), detail, result)


def _state(audit: Audit) -> JobState:
    if audit.over:
        return "failed" if audit.concluded is None else "complete"
    return "queued" if audit.doing == "asked" else "running"


def _progress(audit: Audit) -> float:
    """The share of the rubric that is done: a dimension counts half when its evidence is there, and whole when all
    three judges have spoken."""
    given = [one for one in audit.opinions if one.round == 1]
    done = len(audit.evidence) / 2 + len(given) / (2 * _JUDGES)
    return round(min(done / max(len(audit.criteria), 1), 1.0), 4)


def _message(audit: Audit) -> str:
    if audit.over:
        return "the audit has failed" if audit.concluded is None else "the audit has a report"
    return "the audit was asked for" if audit.doing == "asked" else f"collected so far: {_collected(audit)}"


def _collected(audit: Audit) -> str:
    items = sum(len(found) for found in audit.evidence.values())
    return (
        f"{items} pieces of evidence on {len(audit.evidence)} of {len(audit.criteria)} dimensions, "
        f"{len(audit.opinions)} opinions"
    )
