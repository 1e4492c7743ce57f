"""A run's events, folded to what people are shown of it: where it stands, where its tasks stand, and what changed.

Fold only: no clock, no screen. Whoever shows it says what time it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from contracts.effect import RequestRefused
from contracts.orchestra import TaskResult, TaskState
from contracts.orchestra_events import (
    PlanMade,
    PlannedTask,
    PlannerCallRequested,
    PlannerFailed,
    PlanRequested,
    RunBegun,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
)
from events.event import Event
from pmagent.jobs.progress import Change

Doing = Literal["planning", "permit", "running", "stopping", "refused", "ended"]


class Shown(msgspec.Struct):
    """A task as it is shown. ``state`` is the spec's; ``attempt`` the number of the present or last attempt (0: none);
    ``started`` and ``ended``: log times ("": not yet); ``retry_at``: when the next attempt begins ("": it does not
    wait for one). ``result`` is the worker's."""

    planned: PlannedTask
    created: str
    state: TaskState = "planned"
    attempt: int = 0
    started: str = ""
    ended: str = ""
    reason: str = ""
    retry_at: str = ""
    result: TaskResult | None = None

    @property
    def name(self) -> str:
        """Its id in the plan as written."""
        return self.planned.name

    @property
    def attempts_max(self) -> int:
        """So many attempts it may have."""
        return 1 + self.planned.constraints.max_retries


class Progress:
    """A run as it is known so far, from its request on."""

    def __init__(self, requested: Event) -> None:
        assert isinstance(requested.data, RunRequested), "a run begins with its request"
        self.asked: RunRequested = requested.data
        self.run_id = self.asked.run_id
        self.position = requested.position
        self.requested_at = requested.time
        self.last_time = requested.time
        self.last_position = requested.position
        self.doing: Doing = "planning"
        self.saying = ""
        """What the run does just now, in words, where ``doing`` does not say it all."""
        self.plan_id = ""
        self.revision = 0
        self.permit = 0
        self.tasks: dict[str, Shown] = {}
        """By id, in the plan's order; of a replanned run those of its last plan."""
        self.coming: list[Shown] = []
        """Of a plan that is being told, the tasks so far."""
        self.replaced: list[Shown] = []
        """What an earlier plan had, and a later one has not: failed, or never begun."""
        self.end: RunEnded | RunRefused | RequestRefused | None = None
        self.counts: Counter[TaskState] = Counter()

    @property
    def over(self) -> bool:
        """Whether the run has ended, or never began."""
        return self.end is not None

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        if isinstance(self.end, RunEnded):
            return self.end.state
        return "open" if self.end is None else "refused"

    @property
    def reasons(self) -> list[str]:
        """Why it ended so."""
        if isinstance(self.end, RequestRefused):
            return [f"{self.end.name} is {self.end.reason}"]
        return list(self.end.reasons) if self.end is not None else []

    @property
    def mend(self) -> list[str]:
        """What would help."""
        return list(self.end.mend) if isinstance(self.end, RunEnded | RunRefused) else []

    @property
    def security(self) -> bool:
        """Whether it ended because of what no plan and no tool may."""
        return isinstance(self.end, RunEnded | RunRefused) and self.end.security

    def fold(self, event: Event) -> list[Change]:
        """Take the next event of the run's correlation; what is to be told of it."""
        self.last_time, self.last_position = event.time, event.position
        known = _FOLDS.get(type(event.data))
        return [] if known is None else list(known(self, event, event.data))


def _plan_requested(run: Progress, event: Event, data: PlanRequested) -> Iterator[Change]:
    run.doing, run.saying, run.revision, run.coming = "planning", "", data.revision, []
    if data.revision:
        yield Change(event.time, "", "replanning", f"what failed is planned anew, revision {data.revision}")


def _planner_asked(run: Progress, event: Event, data: PlannerCallRequested) -> Iterator[Change]:
    run.saying = "asking the planner" + (f", attempt {data.attempt}" if data.attempt > 1 else "")
    yield Change(event.time, "", "planning", run.saying)


def _planner_failed(run: Progress, event: Event, data: PlannerFailed) -> Iterator[Change]:
    run.saying = ""
    yield Change(event.time, "", "planning", data.text)


def _tasks_planned(run: Progress, event: Event, data: TasksPlanned) -> Iterator[Change]:
    run.coming += [Shown(planned, event.time) for planned in data.tasks]
    yield from ()


def _plan_made(run: Progress, event: Event, data: PlanMade) -> Iterator[Change]:
    run.doing, run.saying, run.plan_id = "permit", "", data.plan_id
    run.replaced += [task for task in run.tasks.values() if task.state != "done"]
    left = [task for task in run.tasks.values() if task.state == "done"]
    run.tasks = {task.planned.task_id: task for task in (*left, *run.coming)}
    run.counts = Counter(task.state for task in run.tasks.values())
    kept = f", {data.kept} kept" if data.kept else ""
    yield Change(event.time, "", "planned", f"{data.tasks} task{'s' if data.tasks != 1 else ''}{kept}")


def _begun(run: Progress, event: Event, data: RunBegun) -> Iterator[Change]:
    run.doing, run.saying, run.permit = "running", "", data.permit
    yield Change(event.time, "", "running", f"under permit {data.permit}")


def _changed(run: Progress, event: Event, data: TasksChanged) -> Iterator[Change]:
    for change in data.changes:
        task = run.tasks.get(change.task_id)
        if task is None:
            continue
        run.counts[task.state] -= 1
        run.counts[change.state] += 1
        task.state = change.state
        if change.step == "start":
            task.started = event.time
            yield Change(event.time, task.name, "running")
        elif change.state in ("done", "failed"):
            task.ended = event.time
            task.reason = change.reason or (task.reason if change.state == "failed" else "")
            yield Change(event.time, task.name, change.state, task.reason, task.started)


def _attempted(run: Progress, _event: Event, data: TaskAttemptRequested) -> Iterator[Change]:
    task = run.tasks.get(data.task_id)
    if task is not None:
        task.attempt, task.retry_at = data.attempt, ""
    yield from ()


def _attempt_failed(run: Progress, event: Event, data: TaskAttemptFailed) -> Iterator[Change]:
    task = run.tasks.get(data.task_id)
    if task is None:
        return
    task.reason, task.retry_at = data.reason, data.retry_at
    if data.retry_at:
        yield Change(event.time, task.name, "retry", f"attempt {data.attempt}: {data.reason}", task.started)


def _finished(run: Progress, _event: Event, data: TaskFinished) -> Iterator[Change]:
    task = run.tasks.get(data.result.task_id)
    if task is not None:
        task.attempt, task.reason, task.retry_at, task.result = data.attempts, data.reason, "", data.result
    yield from ()


def _stopping(run: Progress, event: Event, data: RunStopping) -> Iterator[Change]:
    run.doing, run.saying = "stopping", "; ".join(data.reasons)
    yield Change(event.time, "", "stopping", run.saying)


def _over(run: Progress, event: Event, data: RunEnded | RunRefused | RequestRefused) -> Iterator[Change]:
    if data.request != run.position:
        return
    run.doing = "ended" if isinstance(data, RunEnded) else "refused"
    run.saying, run.end = "", data
    yield Change(event.time, "", run.state, "; ".join(run.reasons), run.requested_at)


_FOLDS: Final[dict[type, Callable[[Progress, Event, Any], Iterator[Change]]]] = {
    PlanRequested: _plan_requested,
    PlannerCallRequested: _planner_asked,
    PlannerFailed: _planner_failed,
    TasksPlanned: _tasks_planned,
    PlanMade: _plan_made,
    RunBegun: _begun,
    TasksChanged: _changed,
    TaskAttemptRequested: _attempted,
    TaskAttemptFailed: _attempt_failed,
    TaskFinished: _finished,
    RunStopping: _stopping,
    RunEnded: _over,
    RunRefused: _over,
    RequestRefused: _over,
}
