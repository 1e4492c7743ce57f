"""An audit at the shell: its table and its summary for people, its document for programs, its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pmagent.clean import pad, shorten
from pmagent.cli.job_text import Rendering, duration_ms, elapsed, fitted, heading, mark, name_columns, reasons
from pmagent.cli.output import Output, Piece, Styled
from pmagent.events.log import now
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS
from pmagent.projections.views.audits import JUDGES, SOURCES, Audit, Source, Standing
from pmagent.projections.views.jobs import End
from pmagent.when import took

TIMED_OUT: Final = ("timed_out", "pdf_timed_out")
"""Codes of failures for want of time."""
NAME_COLUMNS_MAX: Final = 40
STATE_COLUMNS: Final = 10
TITLES: Final = {"Prosecutor": "P", "Defense": "D", "TechLead": "T"}
"""The judges in a narrow column; the order is that of every document."""


def exit_code(audit: Audit) -> int:
    """The code with which a command ends that has followed the audit to its end."""
    if audit.state == "concluded":
        return Exit.NO if audit.unanswered else Exit.DONE
    return Exit.TIMED_OUT if audit.code in TIMED_OUT else Exit.NO


# --- for programs --------------------------------------------------------------------------------------------------


def document(audit: Audit, copies: Sequence[Path] = ()) -> dict[str, Any]:
    """The audit for programs; ``copies``: where its report was left besides."""
    asked, concluded = audit.asked, audit.concluded is not None
    return {
        "audit_id": audit.id,
        "state": audit.state,
        "exit_code": int(exit_code(audit)),
        "repo_url": asked.repo_url,
        "pdf_path": asked.pdf_path,
        "commit": audit.commit or None,
        "engine": asked.engine,
        "model": asked.model or None,
        "vision_model": asked.vision_model or None,
        "rubric": asked.rubric_source,
        "code": audit.failure or None,
        "reasons": audit.reasons,
        "mend": audit.mend,
        "overall_score": audit.score,
        "report": f"{asked.output}.md" if concluded else None,
        "report_json": f"{asked.output}.json" if concluded else None,
        "copies": [str(path) for path in copies],
        "used": audit.used_fields,
        "unanswered": audit.unanswered,
        "requested_at": audit.at,
        "ended_at": audit.ended or None,
        "duration_ms": duration_ms(audit),
        "criteria": [_criterion(one) for one in audit.standings],
    }


def _criterion(one: Standing) -> dict[str, Any]:
    return {
        "dimension_id": one.criterion.id,
        "name": one.criterion.name,
        "target_artifact": one.criterion.target,
        "state": one.state,
        "evidence": max(0, one.evidence),
        "found": one.found,
        "round": one.round,
        "scores": {judge: one.scores[judge] for judge in JUDGES if judge in one.scores},
        "set_aside": list(one.ruling.set_aside) if one.ruling is not None else [],
        "final_score": one.final_score,
        "reason": one.reason,
        "rules": one.rules,
        "dissent": (one.ruling.dissent_summary or None) if one.ruling is not None else None,
    }


def _entry(audit: Audit, end: End | None) -> dict[str, Any]:
    asked = audit.asked
    return {
        "audit_id": asked.audit_id,
        "repo_url": asked.repo_url,
        "pdf_path": asked.pdf_path,
        "state": audit.state,
        "reasons": audit.reasons,
        "overall_score": end.score if end is not None else None,
        "engine": asked.engine,
        "model": asked.model or None,
        "rubric": asked.rubric_source,
        "requested_at": audit.at,
        "ended_at": audit.ended or None,
        "position": audit.requested,
        "report": f"{asked.output}.md" if audit.state == "concluded" else None,
    }


# --- for people ----------------------------------------------------------------------------------------------------


def summary(output: Output, audit: Audit, copies: Sequence[Path] = ()) -> None:
    """The audit for people, on stdout."""
    sign, score, criteria = mark(audit.state), audit.score, audit.standings
    judge = audit.asked.model or audit.asked.engine
    summary = f"{score:g}/5, judged by {judge}" if score is not None else audit.asked.repo_url
    stands = Styled(f"{sign.text} {audit.state}", sign.style)
    output.line(stands, ": ", shorten(summary, 200), f", {elapsed(audit, now())}")
    reasons(output, audit)
    if audit.over and score is None and any(one.evidence >= 0 for one in criteria):
        output.line("  what was collected is kept:")
    if any(one.state != "waiting" for one in criteria):
        for row in criterion_rows(criteria, output.columns):
            output.line(*row)
    for one in criteria:
        if one.ruling is not None and one.ruling.dissent_summary:
            first = one.ruling.dissent_summary.partition("\n")[0]
            head = f"  dissent on {one.criterion.name}: "
            output.line(Styled(head, "yellow"), shorten(first, max(20, output.columns - len(head))))
    if audit.used_text:
        output.line(f"  models  {audit.used_text}")
    if audit.unanswered:
        told = f"{len(audit.unanswered)} {'criterion has' if len(audit.unanswered) == 1 else 'criteria have'}"
        output.line(Styled(f"  {told} no answer: pmagent audit --resume {audit.id[:8]} asks again", "yellow"))
    if audit.concluded is not None:
        output.line(f"  report  {audit.asked.output}.md")
    for path in copies:
        output.line(f"  copy    {path}")
    output.line(Styled(f"  audit   {audit.id}", "dim"))


def table(audit: Audit, now: str, columns: int, rows: int) -> list[list[Piece]]:
    """The audit at log time ``now``: a heading, what the detectives read, and the criteria. At most ``rows`` lines,
    none wider than ``columns``. Where not all criteria find room, those that are at work come first, and the rest is
    counted. When it is over the heading is left: the answer has the criteria."""
    every = audit.standings
    lines = [_heading(audit, every, now, columns)]
    if audit.over:
        return lines
    lines += [_source_row(name, audit.sources[name], now, columns) for name in SOURCES]
    if audit.wait is not None:
        lines.append([Styled(shorten(f"   {audit.wait_text}", columns), "yellow")])
    criteria = every
    room = max(0, rows - len(lines))
    if len(criteria) > room:
        criteria = [one for one in criteria if one.state in ("evidence", "judging")][: max(0, room - 1)]
    lines += criterion_rows(criteria, columns)
    if len(criteria) < len(every):
        more = f"   {'and' if criteria else 'there are'} {len(every) - len(criteria)} more criteria"
        lines.append([Styled(shorten(more, columns), "dim")])
    return lines[:rows]


def criterion_rows(criteria: Sequence[Standing], columns: int) -> list[list[Piece]]:
    """A row a criterion: state, evidence, the three scores, what was ruled, by which rules."""
    names = name_columns([one.criterion.name for one in criteria], NAME_COLUMNS_MAX)
    return [_row(one, columns, names) for one in criteria]


def _scores(one: Standing) -> str:
    """The three scores in the judges' order; a dash for who has not spoken, brackets around what did not count."""
    aside = one.ruling.set_aside if one.ruling is not None else ()
    scores = [(TITLES[judge], str(one.scores.get(judge, "-")), judge in aside) for judge in JUDGES]
    return "  ".join(f"{title} ({score})" if out else f"{title} {score}" for title, score, out in scores)


def _heading(audit: Audit, criteria: Sequence[Standing], now: str, columns: int) -> list[Piece]:
    ruled = sum(one.ruling is not None for one in criteria)
    judged = sum(len(one.scores) for one in criteria)
    parts = [f"{audit.score:g}/5"] if audit.score is not None else []
    parts += [f"{ruled} of {len(criteria)} ruled" if ruled else f"{judged} opinions"] if judged else []
    parts += [elapsed(audit, now), audit.asked.repo_url]
    return heading(AUDITS, audit, mark(audit.word if audit.over else "running"), parts, columns)


def _source_row(name: str, source: Source, now: str, columns: int) -> list[Piece]:
    spent = took(source.started, source.ended or now)
    cells = [f" {pad(name, 12)}", f"  {pad(source.state, STATE_COLUMNS)}", f"{spent:>9}", f"  {source.text}"]
    return fitted(mark(source.state), cells, columns)


def _row(one: Standing, columns: int, names: int) -> list[Piece]:
    evidence = f"{one.found}/{one.evidence}" if one.evidence >= 0 else ""
    final = "" if one.final_score is None else f"{one.final_score}/5"
    why = ", ".join(one.rules) if one.final_score is not None else one.reason
    cells = [
        f" {pad(one.criterion.name, names)}", f"  {pad(one.state, STATE_COLUMNS)}", f"{evidence:>6}",
        f"   {_scores(one)}", f"   {final:>3}", f"  {why}",
    ]  # fmt: skip
    return fitted(mark(one.state), cells, columns)


AUDIT: Final = Rendering(
    AUDITS, exit_code, table, _entry, document, summary, lambda *_: None, wide=5, next="the next command that runs"
)
