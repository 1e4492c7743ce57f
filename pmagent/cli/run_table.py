"""A run as lines for people: the table that is drawn anew while it goes on, and the lines of a log of changes."""

from __future__ import annotations

from typing import Final

from contracts.orchestra import TaskState
from pmagent.clean import pad, shorten, width
from pmagent.cli.output import Piece, Styled
from pmagent.jobs.progress import Change
from pmagent.orchestra.progress import Progress, Shown
from pmagent.when import seconds_between, spoken

MARKS: Final[dict[str, tuple[str, str]]] = {
    "done": ("✓", "green"), "failed": ("✗", "red"), "running": ("▸", "cyan"), "planned": ("·", "dim"),
    "blocked": ("·", "dim"), "retry": ("↻", "yellow"), "open": ("▸", "cyan"), "refused": ("✗", "red"),
    "cancelled": ("✗", "yellow"), "stopped": ("✗", "red"), "timed_out": ("✗", "red"), "stopping": ("▸", "yellow"),
    "waiting": ("·", "dim"), "evidence": ("▸", "cyan"), "judging": ("▸", "cyan"), "judged": ("▸", "cyan"),
    "ruled": ("✓", "green"), "not judged": ("-", "yellow"), "concluded": ("✓", "green"),
}
"""Mark and style of a state, of a job or a part of it."""

NAME_COLUMNS_MAX: Final = 32
STATE_COLUMNS: Final = 8
TIME_COLUMNS: Final = 9


_ORDER: Final[tuple[TaskState, ...]] = ("done", "failed", "running", "planned", "blocked")


def mark(word: str) -> Styled:
    """The mark of a state."""
    return Styled(*MARKS.get(word, ("•", "")))


def table(progress: Progress, now: str, columns: int, rows: int) -> list[list[Piece]]:
    """The run at log time ``now``: a heading, and its tasks. At most ``rows`` lines, none wider than ``columns``. Where
    not all tasks find room, those that run or failed come first, and the rest is counted."""
    lines = [_heading(progress, now, columns)]
    tasks = list(progress.tasks.values())
    room = max(1, rows - 1)
    if len(tasks) > room:
        tasks = _foremost(tasks, room - 1)
    name_columns = max((width(shorten(task.name, NAME_COLUMNS_MAX)) for task in tasks), default=0)
    lines += [_row(task, now, columns, name_columns) for task in tasks]
    if len(tasks) < len(progress.tasks):
        lines.append(_rest(progress, tasks, columns))
    return lines[:rows]


def change_line(change: Change, job: str = "run") -> list[Piece]:
    """A change as a line of its own: time (UTC), name, what, how long, why. ``job``: what the whole is called."""
    pieces: list[Piece] = [Styled(change.time[11:23], "dim"), "  ", mark(change.word), " ", change.name or job, "  "]
    pieces.append(Styled(change.word, MARKS.get(change.word, ("", ""))[1]))
    if change.since:
        pieces.append(f"  {spoken(seconds_between(change.since, change.time))}")
    if change.text:
        pieces += ["  ", shorten(change.text, 400)]
    return pieces


def count_words(progress: Progress) -> str:
    """How many tasks stand how."""
    total = len(progress.tasks)
    said = [f"{progress.counts['done']} of {total} done"]
    said += [f"{progress.counts[state]} {state}" for state in ("failed", "running") if progress.counts[state]]
    return ", ".join(said)


def _heading(progress: Progress, now: str, columns: int) -> list[Piece]:
    word = progress.state if progress.over else progress.doing
    until = progress.last_time if progress.over else now
    said = [count_words(progress)] if progress.tasks else []
    said += [spoken(seconds_between(progress.requested_at, until))]
    said += [progress.saying] if progress.saying else []
    first = f"run {progress.run_id[:8]}  "
    state = f"{mark(word).text} {word}"
    return [
        Styled(shorten(first, columns), "bold"),
        Styled(shorten(state, columns - len(first)), mark(word).style),
        shorten(f"  {'  '.join(said)}", columns - len(first) - len(state)),
    ]


def _foremost(tasks: list[Shown], room: int) -> list[Shown]:
    running = [task for task in tasks if task.state == "running"]
    failed = [task for task in tasks if task.state == "failed" and task.started]
    return (running + failed)[: max(0, room)]


def _row(task: Shown, now: str, columns: int, name_columns: int) -> list[Piece]:
    waits = task.state == "running" and task.retry_at
    sign = mark("retry" if waits else task.state)
    took = spoken(seconds_between(task.started, task.ended or now)) if task.started else ""
    attempts = f"{task.attempt}/{task.attempts_max}" if task.attempt > 1 or waits else ""
    cells = [
        f" {pad(task.name, name_columns)}", f"  {pad(task.state, STATE_COLUMNS)}", f"{took:>{TIME_COLUMNS}}",
        f"  {attempts}" if attempts else "", f"  {_why(task, now)}",
    ]
    left = columns - 2
    pieces: list[Piece] = [" ", sign] if left >= 0 else []
    for number, cell in enumerate(cells):
        kept = shorten(cell, left)
        left -= width(kept)
        pieces.append(Styled(kept, "dim") if number == len(cells) - 1 else kept)
    return pieces


def _why(task: Shown, now: str) -> str:
    if task.state != "running" or not task.retry_at:
        return task.reason if task.state == "failed" else ""
    left = seconds_between(now, task.retry_at)  # 0 where it is no time: it waits for the next start
    when = f"again in {spoken(max(0.0, left))}" if left else "again at the next start"
    return f"{when}: {task.reason}"


def _rest(progress: Progress, tasks: list[Shown], columns: int) -> list[Piece]:
    counts = progress.counts.copy()
    counts.subtract(task.state for task in tasks)
    words = [f"{count} {state}" for state in _ORDER if (count := counts[state]) > 0]
    more = "and" if tasks else "there are"
    return [Styled(shorten(f"   {more} {sum(counts.values())} more: {', '.join(words)}", columns), "dim")]
