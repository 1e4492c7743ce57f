"""A run as the coordinator sees it: its plan, where the tasks stand, who occupies which place; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from pmagent.actors.orchestra.planning.plan import assignment
from pmagent.actors.orchestra.running import states
from pmagent.actors.orchestra.running.states import Board
from pmagent.actors.orchestra.running.vector import Vector, vector
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

replace = msgspec.structs.replace


class Course(msgspec.Struct, frozen=True):
    """A run. ``requested``: position of its request.

    ``doing``: idle (a plan is not asked for yet), permit or call (of the planner, requested at ``request``), waiting
    (for DaemonStarted, before the planner may be called), planned, running, stopping, over (all tasks have ended).
    ``revision``, ``attempt`` and ``faults`` (what was wrong with the planner's answers) are those of the plan in hand.
    ``planner_permit``: position of the grant. ``tasks``: the plan's, the ``kept`` first of them done since earlier
    ones; ``board`` says where they stand. ``places``: task -> the workers' places that it occupies. ``ends``: position
    of each task's ``task.finished``; 0: none. ``failures``: name and reason of the tasks that failed by themselves.
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
    places: dict[int, list[int]] = {}
    ends: Vector = Vector()
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
        return self.asked.config.concurrency.max_workers - sum(len(held) for held in self.places.values())


def planned(course: Course) -> Course:
    """All tasks of the revision in hand are known: the board is set up."""
    tasks = course.tasks
    made = states.board([task.task_id for task in tasks], [task.depends_on for task in tasks], course.kept)
    ends = [course.ends[place] for place in range(course.kept)] + [0] * (len(tasks) - course.kept)
    return replace(course, doing="planned", request=0, faults=[], failures=[], board=made, ends=vector(ends))


def again(course: Course, revision: int) -> Course:
    """Another plan is wanted: what is done is kept, what failed and what waited for it is let go."""
    board = course.board
    if board is None:
        return replace(course, revision=revision, request=0, attempt=0, planner_permit=0, faults=[])
    done = board.places("done")
    return replace(
        course,
        doing="idle",
        revision=revision,
        request=0,
        attempt=0,
        planner_permit=0,
        faults=[],
        tasks=[course.tasks[place] for place in done],
        kept=len(done),
        board=None,
        ends=vector([course.ends[place] for place in done]),
        security=False,
    )


def changed(course: Course, changes: Sequence[TaskChange]) -> Course:
    """The tasks have made these steps."""
    if course.board is None:
        return course
    return replace(course, board=course.board.stepped(changes))


def occupied(course: Course, task_id: str) -> Course:
    """The task has been assigned: it holds the lowest free places."""
    if course.board is None:
        return course
    place = course.board.order.places[task_id]
    return replace(course, places={**course.places, place: _free(course, place)})


def task_ended(course: Course, position: int, finished: TaskFinished) -> Course:
    """A worker's result has come, at ``position``: its places are free."""
    place = course.board.order.places.get(finished.result.task_id) if course.board is not None else None
    if place is None or place not in course.places:
        return course
    left = {one: held for one, held in course.places.items() if one != place}
    failures = course.failures
    if finished.result.state == "failed":
        failures = [*failures[1 - FAILURES_MAX :], [course.tasks[place].name, finished.reason]]
    return replace(
        course, places=left, ends=course.ends.changed(place, position), failures=failures,
        security=course.security or finished.security,
    )


def begin(course: Course) -> Iterator[Payload]:
    """What follows when the plan may be run."""
    if course.board is not None:
        yield from _on(course, states.begun(course.board))


def go_on(course: Course, finished: TaskFinished) -> Iterator[Payload]:
    """What follows from a task's end, which ``task_ended`` has folded in."""
    board = course.board
    if board is None:
        return
    place = board.order.places.get(finished.result.task_id)
    if place is not None and board.state(place) == "running":
        yield from _on(course, states.ended(board, place, finished.result.state, finished.reason))


def stop(course: Course, reason: str) -> Iterator[Payload]:
    """What follows when the run is to end: nothing begins any more. What occupies no place although it runs has ended
    while nobody decided on it."""
    board = course.board
    if board is None:
        return
    reason = reason if len(reason) <= WHY_CHARS_MAX else f"{reason[: WHY_CHARS_MAX - 1]}…"
    lost = [place for place in board.places("running") if place not in course.places]
    changes: list[TaskChange] = []
    for place in lost:
        made = states.ended(board, place, "failed", reason)
        board = board.stepped(made)
        changes += made
    yield from _on(course, [*changes, *states.abandoned(board, reason)])


def _on(course: Course, changes: list[TaskChange]) -> Iterator[Payload]:
    """The changes, the tasks that may begin because of them, and the plan's end when all have ended."""
    board = course.board
    assert board is not None, "only a course with a board changes"
    board = board.stepped(changes)
    starts: list[int] = []
    if course.doing == "running":
        free, place = course.free, board.first("planned")
        while place >= 0 and (size := course.tasks[place].constraints.concurrency) <= free:
            starts.append(place)
            free -= size
            place = board.first("planned", place + 1)
    changes = [*changes, *(board.change(place, "start") for place in starts)]
    for part in _parts(changes):
        yield TasksChanged(run_id=course.run_id, changes=part)
    for place in starts:
        yield _assigned(course, place)
        course = occupied(course, course.tasks[place].task_id)
    if not starts and board.is_over():
        yield PlanFinished(
            run_id=course.run_id, revision=course.revision, done=board.count("done"), failed=board.count("failed"),
            security=course.security,
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


def _assigned(course: Course, place: int) -> TaskAssigned:
    assert course.board is not None, "only a course with a board assigns"
    return TaskAssigned(
        run_id=course.run_id,
        requested=course.requested,
        permit=course.permit,
        action=course.asked.action,
        name=course.tasks[place].name,
        worker=_free(course, place)[0],
        after={course.tasks[one].name: course.ends[one] for one in course.board.order.waits[place]},
        simulated=course.asked.dry_run,
        backoff_base_sec=course.asked.config.retries.backoff_base_sec,
        assignment=assignment(course.tasks[place]),
    )


def _free(course: Course, place: int) -> list[int]:
    """The lowest free places, from 1 on, as many as the task wants."""
    taken = {one for held in course.places.values() for one in held}
    wanted = course.tasks[place].constraints.concurrency
    free = (number for number in range(1, course.asked.config.concurrency.max_workers + 1) if number not in taken)
    return [number for number, _ in zip(free, range(wanted), strict=False)]
