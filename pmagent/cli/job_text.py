"""Lines for people about runs and about audits alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pmagent.clean import pad, shorten, width
from pmagent.cli.output import Output, Piece, Styled
from pmagent.events.log import now
from pmagent.ids import beginnings
from pmagent.jobs.catalogue import Entry
from pmagent.jobs.kinds import Kind
from pmagent.projections.views.jobs import Change, End, JobView
from pmagent.when import seconds_between, spoken, took

MARKS: Final[dict[str, tuple[str, str]]] = {
    "done": ("✓", "green"), "failed": ("✗", "red"), "running": ("▸", "cyan"), "planned": ("·", "dim"),
    "blocked": ("·", "dim"), "retry": ("↻", "yellow"), "open": ("▸", "cyan"), "refused": ("✗", "red"),
    "cancelled": ("✗", "yellow"), "stopped": ("✗", "red"), "timed_out": ("✗", "red"), "stopping": ("▸", "yellow"),
    "waiting": ("·", "dim"), "evidence": ("▸", "cyan"), "judging": ("▸", "cyan"), "judged": ("▸", "cyan"),
    "skipped": ("-", "dim"), "ruled": ("✓", "green"), "not judged": ("-", "yellow"), "concluded": ("✓", "green"),
}
"""Mark and style of a state, of a job or a part of it."""


class Rendering(NamedTuple):
    """Jobs of one kind at the shell. ``table``: a view at a log time, in so many columns and rows; ``whole``: a view,
    for programs; ``entry``: a ``Jobs.brief`` and its end, for programs; ``summary`` and ``details`` of a view, for
    people. ``wide``: the width of the column of ``End.gist`` in a list. ``next``: the command that takes up what nobody
    carries. ``narrowed``: a view with only those parts that are in one of these states and have the text in what is
    told of them, so many at most; None: nobody can choose among its parts."""

    kind: Kind
    exit_code: Callable[[Any], int]
    table: Callable[[Any, str, int, int], list[list[Piece]]]
    entry: Callable[[Any, End | None], dict[str, Any]]
    whole: Callable[[Any], dict[str, Any]]
    summary: Callable[[Output, Any], None]
    details: Callable[[Output, Any], None]
    wide: int
    next: str
    narrowed: Callable[[Any, Sequence[str], str, int], Any] | None = None


def mark(word: str) -> Styled:
    """The mark of a state."""
    return Styled(*MARKS.get(word, ("•", "")))


def change_line(change: Change, job: str) -> list[Piece]:
    """A change as a line of its own: time (UTC), name, what, how long, why. ``job``: what the whole is called."""
    time = Styled(f"{change.time[11:23]}Z", "dim")
    pieces: list[Piece] = [time, "  ", mark(change.word), " ", change.name or job, "  "]
    pieces.append(Styled(change.word, MARKS.get(change.word, ("", ""))[1]))
    if change.since:
        pieces.append(f"  {spoken(seconds_between(change.since, change.time))}")
    if change.text:
        pieces += ["  ", shorten(change.text, 400)]
    return pieces


def heading(kind: Kind, view: JobView, sign: Styled, parts: list[str], columns: int) -> list[Piece]:
    """The first line of a table."""
    first = f"{kind.word} {view.id[:8]}  "
    state = f"{sign.text} {view.word}"
    return [
        Styled(shorten(first, columns), "bold"),
        Styled(shorten(state, columns - len(first)), sign.style),
        shorten(f"  {'  '.join(parts)}", columns - len(first) - len(state)),
    ]


def fitted(sign: Styled, cells: list[str], columns: int) -> list[Piece]:
    """A mark and cells, cut to the width; the last one is dim."""
    left = columns - 2
    pieces: list[Piece] = [" ", sign] if left >= 0 else []
    for number, cell in enumerate(cells):
        kept = shorten(cell, left)
        left -= width(kept)
        pieces.append(Styled(kept, "dim") if number == len(cells) - 1 else kept)
    return pieces


def name_columns(names: list[str], most: int) -> int:
    """How wide a column of names is."""
    return max((width(shorten(name, most)) for name in names), default=0)


def elapsed(view: JobView, now: str) -> str:
    """From the request to the end, or to log time ``now``, for people."""
    return took(view.at, view.ended or now)


def duration_ms(view: JobView) -> int:
    """From the request to the end, or to now."""
    return round(seconds_between(view.at, view.until(now())) * 1000)


def reasons(output: Output, view: JobView) -> None:
    """Why a job ended so, and what would help."""
    for reason in view.reasons if view.over else ():
        output.line(f"  {reason}")
    for mend in view.mend if view.over else ():
        output.line(Styled(f"  mend: {mend}", "dim"))


def listing(output: Output, shown: Rendering, found: list[Entry], columns: int, *, narrows: bool) -> list[list[Piece]]:
    """A list of jobs for people; ``narrows``: not all were asked for."""
    kind, wide = shown.kind, shown.wide
    head, about = (head.upper() for head in kind.heads)
    if not found:
        return [[f"no such {kind.word}s" if narrows else f"no {kind.word}s yet: {kind.example}"]]
    ids = beginnings(job.job_id for job in found)
    longest = max(map(len, ids.values()))
    asked = f"ASKED FOR ({output.zone})" if output.zone else "ASKED FOR"
    first = f"{kind.word.upper():<{longest}}  {asked:<{output.time_width}}  {'STATE':<11}  {head:>{wide}}  {about}"
    lines: list[list[Piece]] = [[Styled(shorten(first, columns), "bold")]]
    for job in found:
        parts: list[Piece] = [
            pad(ids[job.job_id], longest), "  ", Styled(pad(output.time(job.time), output.time_width), "dim"), "  ",
            mark(job.state), " ",
            pad(job.state, 9), "  ", f"{job.ending.gist if job.ending is not None else '':>{wide}}", "  ",
        ]
        title = f"(pruned) {job.title}" if job.pruned else job.title
        lines.append([*parts, shorten(title, max(20, columns - 21 - longest - output.time_width - wide))])
    return lines
