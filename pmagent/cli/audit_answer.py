"""What an audit came to: the summary for people, the document for programs, the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from events.log import now
from pmagent.audit.progress import JUDGES, Criterion, Progress
from pmagent.clean import shorten
from pmagent.cli.audit_table import criterion_rows
from pmagent.cli.output import Output, Styled
from pmagent.cli.run_table import mark
from pmagent.exitcodes import Exit
from pmagent.when import seconds_between, spoken

TIMED_OUT: Final = ("timed_out", "pdf_timed_out")
"""Codes of failures for want of time."""


def exit_code(progress: Progress) -> int:
    """The code with which a command ends that has followed the audit to its end."""
    if progress.state == "concluded":
        return Exit.DONE
    return Exit.TIMED_OUT if progress.code in TIMED_OUT else Exit.NO


def document(progress: Progress, copies: list[Path]) -> dict[str, Any]:
    """The audit for programs; ``copies``: where its report was left besides."""
    concluded = progress.state == "concluded"
    ended_at = progress.last_time if progress.over else None
    return {
        "audit_id": progress.audit_id,
        "state": progress.state,
        "exit_code": int(exit_code(progress)),
        "repo_url": progress.asked.repo_url,
        "pdf_path": progress.asked.pdf_path,
        "commit": progress.commit or None,
        "engine": progress.asked.engine,
        "model": progress.asked.model or None,
        "vision_model": progress.asked.vision_model or None,
        "rubric": progress.asked.rubric_source,
        "code": progress.code or None,
        "reasons": progress.reasons,
        "mend": progress.mend,
        "overall_score": progress.overall_score,
        "report": f"{progress.asked.output}.md" if concluded else None,
        "report_json": f"{progress.asked.output}.json" if concluded else None,
        "copies": [str(path) for path in copies],
        "requested_at": progress.requested_at,
        "ended_at": ended_at,
        "duration_ms": round(seconds_between(progress.requested_at, ended_at or max(progress.last_time, now())) * 1000),
        "criteria": [_criterion(one) for one in progress.criteria.values()],
    }


def summary(output: Output, progress: Progress, copies: list[Path], now: str) -> None:
    """The audit for people, on stdout, as of log time ``now``."""
    took = spoken(seconds_between(progress.requested_at, progress.last_time if progress.over else now))
    sign = mark(progress.state)
    score = progress.overall_score
    said = f"{score:g}/5, judged by {progress.engine}" if score is not None else progress.asked.repo_url
    output.line(Styled(f"{sign.text} {progress.state}", sign.style), ": ", shorten(said, 200), f", {took}")
    for reason in progress.reasons:
        output.line(f"  {reason}")
    for mend in progress.mend:
        output.line(Styled(f"  mend: {mend}", "dim"))
    if progress.over and score is None and any(one.evidence >= 0 for one in progress.criteria.values()):
        output.line("  what was collected is kept:")
    if any(one.state != "waiting" for one in progress.criteria.values()):
        for row in criterion_rows(list(progress.criteria.values()), output.columns):
            output.line(*row)
    for one in progress.criteria.values():
        if one.dissent:
            first = one.dissent.partition("\n")[0]
            head = f"  dissent on {one.name}: "
            output.line(Styled(head, "yellow"), shorten(first, max(20, output.columns - len(head))))
    if progress.report:
        output.line(f"  report  {progress.report}")
    for path in copies:
        output.line(f"  copy    {path}")
    output.line(Styled(f"  audit   {progress.audit_id}", "dim"))


def _criterion(one: Criterion) -> dict[str, Any]:
    return {
        "dimension_id": one.id,
        "name": one.name,
        "target_artifact": one.target,
        "state": one.state,
        "evidence": max(0, one.evidence),
        "found": one.found,
        "round": one.round,
        "scores": {judge: one.scores[judge] for judge in JUDGES if judge in one.scores},
        "set_aside": list(one.set_aside),
        "final_score": one.final_score,
        "reason": one.reason,
        "rules": list(one.rules),
        "dissent": one.dissent or None,
    }
