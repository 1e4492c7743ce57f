"""A run as its page shows it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from pmagent.clean import shorten
from pmagent.console.pages.drawing import dag, waterfall
from pmagent.console.pages.drawing.waterfall import Lane, Part
from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.events.log import now
from pmagent.jobs.history import Cancelling, Jobs
from pmagent.jobs.story import RunStory
from pmagent.orchestra.paths import folder_of
from pmagent.projections.runs.changes import cut_words
from pmagent.projections.runs.folders import documents
from pmagent.projections.runs.paths import run_paths
from pmagent.projections.runs.report import state_of
from pmagent.projections.views.runs import Run, Task, Try
from pmagent.when import seconds_between, took

ROWS_MAX: Final = 200
FILES_MAX: Final = 200
TRIED_MAX: Final = 100
LINES_MAX: Final = 20
DOCUMENTS: Final = ("report.md", "plan.json", "metrics.json")
FAILED_SHOWN: Final = 20
BRIEF_MAX: Final = 12
"""A run of so few tasks is whole on one page; of a longer one each part has its own."""
TABS: Final = ("graph", "time", "tasks", "artifacts", "all")
STATES: Final = ("done", "failed", "running", "retry", "planned", "blocked")
FIRST: Final = ("failed", "retry", "running", "blocked", "planned", "done")
"""The order of the tasks of a long run: what somebody has to look at, then what goes on, then what is over. Of those
that failed the ones that were never begun come last: they wait for others."""
SHOWN_FIRST: Final = 10
"""So many tasks stand unfolded before somebody unfolds more."""
ORDERS: Final = ("plan", "longest")
"""Other orders of the tasks than ``FIRST``."""

Pair = tuple[Task, PlannedTask]


class Asked(msgspec.Struct, frozen=True):
    """The part of a run that is asked for: a ``tab`` ("": the summary); of the table of tasks those in ``state`` whose
    names or intents hold ``find``, in an ``order`` ("": by state), from the ``start``-th on (0 is the first)."""

    tab: str = ""
    state: str = ""
    find: str = ""
    start: int = 0
    order: str = ""


class TaskRow(msgspec.Struct, frozen=True):
    """A task in the table."""

    name: str
    state: str
    intent: str
    program: str
    attempts: str
    took: str
    exit: str
    reason: str
    address: str


class Group(msgspec.Struct, frozen=True):
    """Tasks of a page that are in one state; ``count``: how many of all there are."""

    state: str
    count: int
    rows: list[TaskRow]


class FileRow(msgspec.Struct, frozen=True):
    """An artifact in a table."""

    task: str
    path: str
    size: int
    sha256: str
    address: str


class AttemptRow(msgspec.Struct, frozen=True):
    """An attempt that was not enough, or is not over. ``end``: what became of it."""

    task: str
    address: str
    number: int
    began: str
    took: str
    end: str
    again: str


class Failure(msgspec.Struct, frozen=True):
    """A task that failed, and the last of what it said."""

    name: str
    address: str
    reason: str
    lines: list[str]


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run's page shows. ``tasks`` are ``rows_from`` and following of ``rows_total`` in the state that was
    asked for ("": any); ``groups`` are the same by state, where they stand in that order. ``counts``: state -> how
    many. ``pruned``: the day on which its files were given up."""

    run: Run
    brief: bool
    pruned: str
    words: str
    word: str
    took: str
    planned_by: str
    folder: str
    documents: list[str]
    counts: dict[str, int]
    order: Markup
    order_whole: bool
    times: Markup
    times_left_out: int
    tasks: list[TaskRow]
    groups: list[Group]
    rows_from: int
    rows_total: int
    attempts: list[AttemptRow]
    attempts_left_out: int
    failures: list[Failure]
    files: list[FileRow]
    files_left_out: int
    cancelled: Cancelling | None


def run_page(story: RunStory, jobs: Jobs, asked: Asked = Asked()) -> RunPage:  # noqa: B008 - frozen
    """The page: all of a brief run, else the part that is asked for."""
    run, pairs = story.view, story.view.pairs
    brief = len(pairs) <= BRIEF_MAX and not asked.tab

    def has(tab: str) -> bool:
        return brief or asked.tab in (tab, "all")

    lanes, begun = _lanes(run, pairs) if has("time") else ([], 0)
    find = asked.find.casefold()
    wanted = [
        pair for pair in pairs if asked.state in ("", shown_state(pair[0]))
        and (not find or find in f"{pair[1].name} {pair[1].intent}".casefold())
    ]  # fmt: skip
    rows = [_row(run, *pair) for pair in _ordered(run, wanted, asked, brief)[asked.start : asked.start + ROWS_MAX]]
    tried = [row for pair in pairs if any(one.reason for one in pair[0].tries) for row in attempt_rows(run, *pair)]
    files = _files(run)
    boxed = len(pairs) <= dag.BOXES_MAX
    order = dag.drawn([_node(run, *pair, told=boxed) for pair in pairs] if has("graph") else [])
    return RunPage(
        run=run,
        brief=brief,
        pruned=story.pruned[:10],
        words=state_of(run),
        word=run.word,
        took=took(run.at, run.until(now())),
        planned_by=f"as given: {run.asked.source}" if run.given else "made by the planner",
        folder=folder_of(run.asked.config, run.id),
        documents=[name for name in DOCUMENTS if _has(run, name)],
        counts=_counts(pairs),
        order=order.picture,
        order_whole=order.whole,
        times=waterfall.drawn(lanes, *_span(run, lanes)) if lanes else Markup(""),
        times_left_out=begun - len(lanes),
        tasks=rows,
        groups=_groups(rows, wanted) if not (brief or asked.order or asked.tab == "all") else [],
        rows_from=asked.start,
        rows_total=len(wanted),
        attempts=tried[:TRIED_MAX],
        attempts_left_out=max(len(tried) - TRIED_MAX, 0),
        failures=_failures(run, pairs),
        files=files[:FILES_MAX],
        files_left_out=max(len(files) - FILES_MAX, 0),
        cancelled=jobs.cancelling(run.stopped_by),
    )


def task_address(run_id: str, task_id: str) -> str:
    """A task's page."""
    return f"/runs/{run_id}/tasks/{task_id}"


def file_address(run_id: str, sha256: str, path: str) -> str:
    """Where an artifact is had."""
    return f"/runs/{run_id}/artifacts/{sha256}/{quote(path.rpartition('/')[2], safe='')}"


def shown_state(task: Task) -> str:
    """A task's state; ``retry`` where it runs on paper only, and waits for its next attempt."""
    return "retry" if task.retry_at else task.state


def took_of(run: Run, task: Task) -> str:
    """From the task's start to its end, or to now."""
    return took(task.started, task.ended or run.until(now()))


def attempts_of(task: Task, planned: PlannedTask) -> str:
    """How many attempts it had, of how many."""
    return f"{task.attempts} of {1 + planned.constraints.max_retries}" if task.attempts else ""


def exit_of(code: int | None, signal: int | None = None) -> str:
    """How a program ended, in a word."""
    return f"signal {signal}" if signal is not None else "" if code is None else str(code)


def attempt_rows(run: Run, task: Task, planned: PlannedTask) -> list[AttemptRow]:
    """The attempts that are remembered of a task."""
    address = task_address(run.id, planned.task_id)
    return [
        AttemptRow(
            planned.name, f"{address}?attempt={one.attempt}", one.attempt, one.at,
            took(one.at, one.ended or run.until(now())), _end_of(one), one.retry_at,
        )
        for one in task.tries
    ]  # fmt: skip


def _end_of(one: Try) -> str:
    if one.reason:
        return one.reason
    if not one.ended:
        return "runs"
    if one.exit_code is None and one.signal is None:
        return "cut off"
    return "exit 0" if one.exit_code == 0 else f"exit {exit_of(one.exit_code, one.signal)}"


def _has(run: Run, name: str) -> bool:
    if name == "report.md":
        return True
    return run.plan is not None and (name == "plan.json" or not run.asked.plan_only)


def document(story: RunStory, jobs: Jobs, name: str) -> bytes | None:
    """One of the run's documents, ``report.md``, ``plan.json`` or ``metrics.json``: the bytes that its projection makes
    of the same events; None where the run has no such document. Raises CorruptLog."""
    at = run_paths(story.view.asked.config.paths, story.view.id)
    path = {"report.md": at.report, "plan.json": at.plan, "metrics.json": at.metrics}[name]
    part = documents(story.view, None, jobs.storage.log_id()).get(path)
    if part is None:
        return None
    content = part.content()
    assert isinstance(content, bytes), "these are not blobs, nor do they grow"
    return content


# --- parts ---------------------------------------------------------------------------------------------------------


def _counts(pairs: Sequence[Pair]) -> dict[str, int]:
    counted = Counter(shown_state(task) for task, _ in pairs)
    return {state: counted[state] for state in STATES if counted[state]}


def _ordered(run: Run, pairs: Sequence[Pair], asked: Asked, brief: bool) -> Sequence[Pair]:
    """The tasks as they are to stand; a brief run's, and all on paper, in the plan's order."""
    if asked.order == "longest":
        return sorted(pairs, key=lambda pair: -_seconds(run, pair[0]))
    if brief or asked.order or asked.tab == "all":
        return pairs
    return sorted(pairs, key=lambda pair: (FIRST.index(shown_state(pair[0])), not pair[0].attempts))


def _seconds(run: Run, task: Task) -> float:
    return seconds_between(task.started, task.ended or run.until(now())) if task.started else -1.0


def _groups(rows: Sequence[TaskRow], pairs: Sequence[Pair]) -> list[Group]:
    counts = _counts(pairs)
    by_state = {state: [row for row in rows if row.state == state] for state in FIRST}
    return [Group(state, counts[state], some) for state, some in by_state.items() if some]


def _row(run: Run, task: Task, planned: PlannedTask) -> TaskRow:
    return TaskRow(
        planned.name, shown_state(task), shorten(planned.intent, 160),
        shorten(shlex.join([planned.tools[0], *planned.inputs.args]), 160), attempts_of(task, planned),
        took_of(run, task), exit_of(task.exit_code), task.reason or cut_words(run, task),
        task_address(run.id, planned.task_id),
    )  # fmt: skip


def _node(run: Run, task: Task, planned: PlannedTask, *, told: bool) -> dag.Node:
    """A task in the order; ``told``: with words, for where it is drawn as a box."""
    state = shown_state(task)
    if not told:
        return dag.Node(planned.task_id, planned.name, state, planned.depends_on)
    parts = [f"{state}, attempt {task.attempts}" if task.attempts > 1 else state, took_of(run, task)]
    note = " · ".join(part for part in parts if part)
    address = task_address(run.id, planned.task_id)
    return dag.Node(planned.task_id, planned.name, state, planned.depends_on, note, planned.intent, address)


def _lanes(run: Run, pairs: Sequence[Pair]) -> tuple[list[Lane], int]:
    """Tasks that have begun, in the order in which they did, and how many there are; where they are too many, those
    that went well and were short are left out."""
    begun = [(task, planned) for task, planned in pairs if task.tries or task.started]
    chosen = begun
    if len(begun) > waterfall.ROWS_MAX:
        chosen = sorted(begun, key=_dull)
    chosen = sorted(chosen[: waterfall.ROWS_MAX], key=lambda pair: pair[0].started or pair[0].tries[0].at)
    return [_lane(run, *pair) for pair in chosen], len(begun)


def _dull(pair: Pair) -> tuple[bool, int]:
    """Entries with the least to see come last."""
    return pair[0].state == "done" and len(pair[0].tries) < 2, -pair[0].duration_ms


def _lane(run: Run, task: Task, planned: PlannedTask) -> Lane:
    parts = [took_of(run, task)]
    parts += [f"{task.attempts} attempts"] if task.attempts > 1 else []
    note = ", ".join(part for part in parts if part)
    address = task_address(run.id, planned.task_id)
    return Lane(planned.name, shown_state(task), parts_of(task, run.until(now())), note, address)


def parts_of(task: Task, now: str) -> list[Part]:
    """The attempts of a task that are remembered, and the pauses between them, as far as log time ``now``."""
    found: list[Part] = []
    for number, one in enumerate(task.tries):
        last = number == len(task.tries) - 1
        end = one.ended or now
        kind = _kind_of(one, ended=last and task.state == "failed")
        found.append(Part(kind, one.at, end, f"attempt {one.attempt}, {took(one.at, end)}: {_end_of(one)}"))
        until = now if last else task.tries[number + 1].at
        waits = one.ended and (not last or (task.state == "running" and one.reason))
        if waits and until > end:
            found.append(Part("waiting", end, until, f"{took(end, until)} until the next attempt"))
    return found


def _kind_of(one: Try, *, ended: bool) -> str:
    """An attempt's outcome; ``ended``: the task has failed with it."""
    if not one.ended:
        return "running"
    if not one.reason and one.exit_code == 0:
        return "done"
    return "failed" if ended else "retry"


def _span(run: Run, lanes: Sequence[Lane]) -> tuple[str, str]:
    """From when the first began to the end of the run, or to its newest event."""
    starts = [part.start for lane in lanes for part in lane.parts]
    return min(starts, default=run.begun or run.at), run.until(now())


def _failures(run: Run, pairs: Sequence[Pair]) -> list[Failure]:
    failed = [pair for pair in pairs if pair[0].state == "failed" and pair[0].attempts]
    return [
        Failure(
            planned.name, task_address(run.id, planned.task_id), task.reason,
            run.last_lines.get(planned.task_id, [])[-LINES_MAX:],
        )
        for task, planned in failed[:FAILED_SHOWN]
    ]  # fmt: skip


def _files(run: Run) -> list[FileRow]:
    return [
        FileRow(
            left.name, one.path.partition("/")[2], one.size_bytes, one.checksum,
            file_address(run.id, one.checksum, one.path),
        )
        for left in run.left
        for one in left.artifacts
    ]  # fmt: skip
