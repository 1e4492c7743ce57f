"""An audit as lines for people: the table that is drawn anew while it goes on, and the lines of a log of changes."""

from __future__ import annotations

from typing import Final

from pmagent.audit.progress import JUDGES, SOURCES, Criterion, Progress, Source
from pmagent.clean import pad, shorten, width
from pmagent.cli import run_table
from pmagent.cli.output import Piece, Styled
from pmagent.cli.run_table import mark
from pmagent.jobs.progress import Change
from pmagent.when import seconds_between, spoken

NAME_COLUMNS_MAX: Final = 40
STATE_COLUMNS: Final = 10
TITLES: Final = {"Prosecutor": "P", "Defense": "D", "TechLead": "T"}
"""The judges in a narrow column; the order is that of every document."""


def change_line(change: Change) -> list[Piece]:
    """A change as a line of its own; see ``run_table.change_line``."""
    return run_table.change_line(change, "audit")


def table(progress: Progress, now: str, columns: int, rows: int) -> list[list[Piece]]:
    """The audit at log time ``now``: a heading, what the detectives read, and the criteria. At most ``rows`` lines,
    none wider than ``columns``. Where not all criteria find room, those that are at work come first, and the rest is
    counted. When it is over the heading is left: the answer has the criteria."""
    lines = [_heading(progress, now, columns)]
    if progress.over:
        return lines
    lines += [_source_row(progress.sources[name], now, columns) for name in SOURCES]
    criteria = list(progress.criteria.values())
    room = max(0, rows - len(lines))
    if len(criteria) > room:
        criteria = [one for one in criteria if one.state in ("evidence", "judging")][: max(0, room - 1)]
    lines += criterion_rows(criteria, columns)
    if len(criteria) < len(progress.criteria):
        left = len(progress.criteria) - len(criteria)
        lines.append([Styled(shorten(f"   {'and' if criteria else 'there are'} {left} more criteria", columns), "dim")])
    return lines[:rows]


def criterion_rows(criteria: list[Criterion], columns: int) -> list[list[Piece]]:
    """A row a criterion: state, evidence, the three scores, what was ruled, by which rules."""
    name_columns = max((width(shorten(one.name, NAME_COLUMNS_MAX)) for one in criteria), default=0)
    return [_row(one, columns, name_columns) for one in criteria]


def scores_text(criterion: Criterion) -> str:
    """The three scores in the judges' order; a dash for who has not spoken, brackets around what did not count."""
    said = []
    for judge in JUDGES:
        score = criterion.scores.get(judge)
        shown = "-" if score is None else str(score)
        said.append(f"{TITLES[judge]} ({shown})" if judge in criterion.set_aside else f"{TITLES[judge]} {shown}")
    return "  ".join(said)


def _heading(progress: Progress, now: str, columns: int) -> list[Piece]:
    word = progress.state if progress.over else progress.doing
    until = progress.last_time if progress.over else now
    ruled = sum(1 for one in progress.criteria.values() if one.ruled)
    judged = sum(len(one.scores) for one in progress.criteria.values())
    said = [f"{progress.overall_score:g}/5"] if progress.overall_score is not None else []
    said += [f"{ruled} of {len(progress.criteria)} ruled" if ruled else f"{judged} opinions"] if judged else []
    said += [spoken(seconds_between(progress.requested_at, until)), progress.asked.repo_url]
    first = f"audit {progress.audit_id[:8]}  "
    sign = mark(word if progress.over else "running")
    state = f"{sign.text} {word}"
    return [
        Styled(shorten(first, columns), "bold"),
        Styled(shorten(state, columns - len(first)), sign.style),
        shorten(f"  {'  '.join(said)}", columns - len(first) - len(state)),
    ]


def _source_row(source: Source, now: str, columns: int) -> list[Piece]:
    took = spoken(seconds_between(source.started, source.ended or now)) if source.started else ""
    cells = [f" {pad(source.name, 12)}", f"  {pad(source.state, STATE_COLUMNS)}", f"{took:>9}", f"  {source.text}"]
    return _fitted(mark(source.state), cells, columns)


def _row(one: Criterion, columns: int, name_columns: int) -> list[Piece]:
    evidence = f"{one.found}/{one.evidence}" if one.evidence >= 0 else ""
    final = "" if one.final_score is None else f"{one.final_score}/5"
    why = ", ".join(one.rules) if one.final_score is not None else one.reason
    cells = [
        f" {pad(one.name, name_columns)}",
        f"  {pad(one.state, STATE_COLUMNS)}",
        f"{evidence:>6}",
        f"   {scores_text(one)}",
        f"   {final:>3}",
        f"  {why}",
    ]
    return _fitted(mark(one.state), cells, columns)


def _fitted(sign: Styled, cells: list[str], columns: int) -> list[Piece]:
    """A mark and cells, cut to the width; the last one is dim."""
    left = columns - 2
    pieces: list[Piece] = [" ", sign] if left >= 0 else []
    for number, cell in enumerate(cells):
        kept = shorten(cell, left)
        left -= width(kept)
        pieces.append(Styled(kept, "dim") if number == len(cells) - 1 else kept)
    return pieces
