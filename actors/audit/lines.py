"""The audit's events, each in one line, and its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pmagent.actors.core.alerts import Alert, Judged, Judges, reasons
from pmagent.actors.core.lines import Line, at_path, count, shown
from pmagent.events.event import Event


def _criterion_ruled(data: dict[str, Any]) -> str:
    score = data.get("final_score")
    said = f"not judged: {shown(data.get('reason'))}" if score is None else f"{shown(score)}"
    return f"{shown(data.get('dimension_id'))}: {said}"


def _evidence_found(data: dict[str, Any]) -> str:
    listed = data.get("evidences")
    pieces = listed if isinstance(listed, list) else []
    found = [one for one in pieces if isinstance(one, dict) and one.get("found") is True]
    return f"{shown(data.get('dimension_id'))}: {count(listed)} pieces, {len(found)} of what is there"


def _opinion_given(data: dict[str, Any]) -> str:
    again = ", second round" if data.get("round") == 2 else ""
    judge, criterion = (shown(at_path(data, f"opinion.{name}")) for name in ("judge", "criterion_id"))
    said = shown(at_path(data, "opinion.argument"))
    return f"{judge} on {criterion}: {shown(at_path(data, 'opinion.score'))}{again}: {said}"


def _pdf_read(data: dict[str, Any]) -> str:
    claims = count(at_path(data, "reading.claims"))
    return f"{shown(at_path(data, 'reading.pages'))} pages, {claims} paths named"


def _pictures_read(data: dict[str, Any]) -> str:
    kept = count(at_path(data, "reading.pictures"))
    return f"{shown(at_path(data, 'reading.count'))} images, {kept} of them kept"


def _surveyed(data: dict[str, Any]) -> str:
    survey = data.get("survey")
    commit, files = shown(at_path(survey, "commit"))[:12], shown(at_path(survey, "file_count"))
    commits, graphs = shown(at_path(survey, "history.total")), at_path(survey, "graphs")
    return f"commit {commit}: {files} files, {commits} commits, {count(graphs)} graphs"


LINES: Final[dict[str, Line]] = {
    "audit.cancel_answered": "accepted {accepted} {text}",
    "audit.cancel_requested": "cancel {audit_id}: {reason}",
    "audit.clone_requested": "clone and survey {repo_url}",
    "audit.concluded": "{overall_score} of 5: {executive_summary}",
    "audit.criterion_ruled": _criterion_ruled,
    "audit.evidence_found": _evidence_found,
    "audit.failed": "{code}: {reasons}",
    "audit.opinion_given": _opinion_given,
    "audit.opinion_rejected": "{judge} on {criterion_id}, answer {attempt} is no opinion: {objection}",
    "audit.pdf_read": _pdf_read,
    "audit.pdf_requested": "read {pdf_path}",
    "audit.pictures_read": _pictures_read,
    "audit.pictures_requested": "take the images out of {pdf_path}",
    "audit.requested": "{repo_url} and {pdf_path}, judged by {engine} {model}",
    "audit.source_failed": "{code}: {text}",
    "audit.surveyed": _surveyed,
}


_TOLD: Final = ("cancelled", "known", "busy")
"""Failures that an operator wanted, or of which the asker is told at once."""


def _failed(event: Event) -> Iterator[Judged]:
    data = event.data
    if data.code not in _TOLD:
        yield Alert(
            kind="audit_failed", severity="bad", title="An audit failed", subject=data.audit_id,
            detail=reasons(data.reasons), page=f"/audits/{data.audit_id}",
        )  # fmt: skip


ALERTS: Final[Judges] = {"audit.failed": _failed}
