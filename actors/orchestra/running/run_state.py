"""A run as the coordinator sees it: its plan, the states of its tasks, and which worker slots they occupy; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from pmagent.actors.orchestra.planning.plan import assignment
from pmagent.actors.orchestra.running import states
from pmagent.actors.orchestra.running.form import start, success
from pmagent.actors.orchestra.running.states import Board
from pmagent.actors.orchestra.running.vector import Vector, vector
from pmagent.contracts.orchestra import TaskOptions
from pmagent.contracts.orchestra_events import (
    PlanFinished,
    PlannedTask,
    RunRequested,
    TaskAssigned,
    TaskChange,
    TaskFinished,
    TasksChanged,
)
from pmagent.contracts.payload import Payload, encode

FAILURES_MAX: Final = 50
"""So many failed tasks, the latest, are remembered for who makes another plan."""

CHANGES_MAX: Final = 2_000
CHANGES_BYTES: Final = 640 * 1024
"""So many changes stand in one event at most, of so many bytes together."""

WHY_CHARS_MAX: Final = 200
"""So much of why a run stops is said of each of its tasks; the run has all of it."""


class CoordinatedRun(msgspec.Struct, frozen=True):
    """A run. ``requested``: position of its request.

    ``doing``: idle (a plan is not asked for yet), permit or call (of the planner, requested at ``request``), waiting
    (for DaemonStarted, before the planner may be called), planned, running, stopping, over (all tasks have ended).
    ``revision``, ``attempt`` and ``faults`` (what was wrong with the planner's answers) are those of the plan in hand.
    ``planner_permit``: position of the grant. ``tasks``: the plan's, the ``kept`` first of them done since earlier
    ones; ``board`` holds their states. ``slots``: task -> the worker slots that it occupies. ``end_positions``:
    position of each task's ``task.finished``; 0: none. ``failures``: name and reason of the tasks that failed by
    themselves.
    """

    run_id: str
    requested: int
    asked: RunRequested
    doing: Literal["idle", "permit", "waiting", "call", "planned", "running", "stopping", "over"] = "idle"
    request: int = 0
    revision: int = 0
    attempt: int = 0
    planner_permit: int = 0
    faults: list[str] = []
    tasks: list[PlannedTask] = []
    kept: int = 0
    board: Board | None = None
    permit: int = 0
    slots: dict[int, list[int]] = {}
    end_positions: Vector = Vector()
    failures: list[list[str]] = []
    security: bool = False
    why: str = ""

    @property
    def calling(self) -> bool:
        """Whether a call of the planner may be open."""
        return self.request > 0 and self.planner_permit > 0

    @property
    def free(self) -> int:
        """How many of the run's workers have nothing to do."""
        return self.asked.config.concurrency.max_workers - sum(len(held) for held in self.slots.values())


def planned(run: CoordinatedRun) -> CoordinatedRun:
    """All tasks of the revision in hand are known: the board is set up."""
    tasks = run.tasks
    options = {index: task.options for index, task in enumerate(tasks) if isinstance(task.options, TaskOptions)}
    ends = [run.end_positions[index] for index in range(run.kept)]
    if not run.revision:
        ends = [run.asked.done[task.name] for task in tasks if task.name in run.asked.done]
    made = states.board([task.task_id for task in tasks], [task.depends_on for task in tasks], len(ends), options)
    return replace(
        run, doing="planned", request=0, faults=[], failures=[], kept=len(ends), board=made,
        end_positions=vector(ends + [0] * (len(tasks) - len(ends))),
    )


def again(run: CoordinatedRun, revision: int) -> CoordinatedRun:
    """Another plan is wanted: keep tasks that are done, drop those that failed and those that waited for them."""
    board = run.board
    if board is None:
        return replace(run, revision=revision, request=0, attempt=0, planner_permit=0, faults=[])
    done = board.finished()
    return replace(
        run, doing="idle", revision=revision, request=0, attempt=0, planner_permit=0, faults=[],
        tasks=[run.tasks[index] for index in done], kept=len(done), board=None,
        end_positions=vector([run.end_positions[index] for index in done]), security=False,
    )


def changed(run: CoordinatedRun, changes: Sequence[TaskChange]) -> CoordinatedRun:
    """The tasks have made these steps."""
    if run.board is None:
        return run
    return replace(run, board=run.board.stepped(changes))


def occupied(run: CoordinatedRun, task_id: str) -> CoordinatedRun:
    """The task has been assigned: it occupies the lowest free slots."""
    if run.board is None:
        return run
    index = run.board.order.by_id[task_id]
    return replace(run, slots={**run.slots, index: _free_slots(run, index)})


def started(run: CoordinatedRun, task_id: str) -> CoordinatedRun:
    """``occupied``, and in the second form the step, which has no event of its own."""
    run = occupied(run, task_id)
    return run if run.asked.form is UNSET else changed(run, start(run.run_id, task_id).changes)


def task_ended(run: CoordinatedRun, position: int, finished: TaskFinished) -> CoordinatedRun:
    """A worker's result has come, at ``position``: its slots are free."""
    if run.board is None:
        return run
    index = run.board.order.by_id.get(finished.result.task_id)
    if index is None or index not in run.slots:
        return run
    left = {one: held for one, held in run.slots.items() if one != index}
    failures = run.failures
    if finished.result.state == "done" and run.asked.form is not UNSET and run.board.state(index) == "running":
        run = changed(run, success(run.run_id, finished.result.task_id).changes)
    if finished.result.state == "failed":
        failures = [*failures[1 - FAILURES_MAX :], [run.tasks[index].name, finished.reason]]
    return replace(
        run, slots=left, end_positions=run.end_positions.changed(index, position), failures=failures,
        security=run.security or finished.security,
    )


def begin(run: CoordinatedRun) -> Iterator[Payload]:
    """The decisions when the plan may be run."""
    if run.board is not None:
        yield from _on(run, states.begun(run.board))


def go_on(run: CoordinatedRun, finished: TaskFinished) -> Iterator[Payload]:
    """The decisions on a task's end, which ``task_ended`` has folded in."""
    board = run.board
    if board is None:
        return
    index = board.order.by_id.get(finished.result.task_id)
    if index is not None and finished.result.state == "done" and run.asked.form is not UNSET:
        yield from _on(run, states.succeeded(board, index))
    elif index is not None and board.state(index) == "running":
        yield from _on(run, states.ended(board, index, finished.result.state, finished.reason))


def stop(run: CoordinatedRun, reason: str) -> Iterator[Payload]:
    """The decisions when the run is to end: nothing begins any more. A running task without a slot ended while no
    decision was made on it."""
    board = run.board
    if board is None:
        return
    reason = reason if len(reason) <= WHY_CHARS_MAX else f"{reason[: WHY_CHARS_MAX - 1]}…"
    lost = [index for index in board.indexes("running") if index not in run.slots]
    changes: list[TaskChange] = []
    for index in lost:
        made = states.ended(board, index, "failed", reason)
        board = board.stepped(made)
        changes += made
    yield from _on(run, [*changes, *states.abandoned(board, reason)])


def _on(run: CoordinatedRun, changes: list[TaskChange]) -> Iterator[Payload]:
    """The changes, the tasks that may begin because of them, and the plan's end when all have ended."""
    board = run.board
    assert board is not None, "only a run with a board changes"
    board = board.stepped(changes)
    starts: list[int] = []
    if run.doing == "running":
        free, index = run.free, board.first("planned")
        while index >= 0 and (size := run.tasks[index].constraints.concurrency) <= free:
            starts.append(index)
            free -= size
            index = board.first("planned", index + 1)
    if run.asked.form is UNSET:
        changes = [*changes, *(board.change(index, "start") for index in starts)]
    for part in _parts(changes):
        yield TasksChanged(run_id=run.run_id, changes=part)
    for index in starts:
        yield _assigned(run, index)
        run = occupied(run, run.tasks[index].task_id)
    if not starts and board.is_over():
        tolerated = board.letters.count(states.TOLERATED)
        yield PlanFinished(
            run_id=run.run_id, revision=run.revision, done=board.count("done"),
            failed=board.count("failed") - tolerated, security=run.security, tolerated=tolerated or UNSET,
        )


def _parts(changes: Sequence[TaskChange]) -> Iterator[list[TaskChange]]:
    """The changes, so many at a time as one event holds."""
    part: list[TaskChange] = []
    size = 0
    for change in changes:
        more = len(encode(change))
        if part and (len(part) == CHANGES_MAX or size + more > CHANGES_BYTES):
            yield part
            part, size = [], 0
        part.append(change)
        size += more
    if part:
        yield part


def _assigned(run: CoordinatedRun, index: int) -> TaskAssigned:
    assert run.board is not None, "only a run with a board assigns"
    before = run.board.order.waits[index]
    return TaskAssigned(
        run_id=run.run_id, requested=run.requested, permit=run.permit, action=run.asked.action,
        name=run.tasks[index].name, worker=_free_slots(run, index)[0],
        after={run.tasks[one].name: run.end_positions[one] for one in before if run.end_positions[one]},
        simulated=run.asked.dry_run, backoff_base_sec=run.asked.config.retries.backoff_base_sec,
        assignment=assignment(run.tasks[index]),
    )


def _free_slots(run: CoordinatedRun, index: int) -> list[int]:
    """The lowest free slots, from 1 on, as many as the task needs."""
    taken = {one for held in run.slots.values() for one in held}
    wanted = run.tasks[index].constraints.concurrency
    free = (number for number in range(1, run.asked.config.concurrency.max_workers + 1) if number not in taken)
    return [number for number, _ in zip(free, range(wanted), strict=False)]
