"""Laws of attempts, their retries and pauses, and of the planner's calls: see ``invariants_runs``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pmagent.contracts.effect import EffectCancelled, EffectInterrupted, EffectRefused
from pmagent.contracts.orchestra import TaskOptions
from pmagent.contracts.orchestra_events import (
    PlannedTask,
    PlannerFailed,
    RunRequested,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.events.event import Event, time_after
from pmagent.replay.simulation.world import require, there

LIVE: Final = ("daemon", "orchestra.run")
"""The processes that take up runs which another left."""

CALLS_MAX: Final = 3
"""So often a planner is asked for one plan."""

DAY_SECONDS: Final = 86_400.0
"""The longest pause."""


class Task:
    """A task of a plan, and what came of it so far."""

    def __init__(self, planned: PlannedTask) -> None:
        self.planned = planned
        self.id, self.name = planned.task_id, planned.name
        self.size, self.retries = planned.constraints.concurrency, planned.constraints.max_retries
        self.state = "planned"
        self.holds = 0
        """How many places it occupies."""
        self.assigned = 0
        self.attempts = 0
        self.open = 0
        """Position of the attempt that goes on."""
        self.failures = 0
        """Attempts that failed and count."""
        self.closed = ""
        """Why there may be no further attempt."""
        self.not_before = ""
        """No further attempt may begin before this time."""
        self.cut = 0
        """Position of the end of an attempt that was cut off, if it was the last."""
        self.result = ""
        self.finished = 0
        self.skipped = False

    @property
    def options(self) -> TaskOptions:
        """Those of the plan."""
        return self.planned.options or TaskOptions()

    @property
    def outcome(self) -> str:
        """How it counts for those that wait for it: good, bad or skipped; "" while it has not ended."""
        if self.state == "done":
            return "skipped" if self.skipped else "good"
        tolerated = self.options.continue_on_error and self.result == "failed"
        return ("good" if tolerated else "bad") if self.state == "failed" else ""


class Run:
    """A request for a run, and what came of it so far. ``tasks``: those of the plan in hand, in its order."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.asked: RunRequested = event.data
        self.revision = -1
        self.tasks: list[Task] = []
        self.kept: list[Task] = []
        self.planned = self.begun = self.finished = False
        self.permit = 0
        self.stopping = 0
        self.must = ""
        """How it has to end ("": as its tasks do)."""
        self.over = 0
        self.last = (0, 0)
        """How many tasks of the last plan that came to its end are done, and how many failed."""
        self.security = False
        self.calls = 0
        self.call = 0
        """Position of the planner's call that goes on."""
        self.mute = False
        """Whether the planner must not be asked again."""

    @property
    def where(self) -> str:
        """How a violation names it."""
        return f"run {self.event.position}"

    @property
    def free(self) -> int:
        """How many places nobody occupies."""
        return self.asked.config.concurrency.max_workers - sum(task.holds for task in self.tasks)

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks are done, and how many have failed that must not."""
        return sum(task.state == "done" for task in self.tasks), sum(task.outcome == "bad" for task in self.tasks)

    def task(self, id: str) -> Task | None:
        """The task of the plan in hand with this id."""
        return next((task for task in self.tasks if task.id == id), None)

    def must_end(self, state: str) -> None:
        """From now on it has to end so, unless it is ending already."""
        if not self.must and not self.stopping:
            self.must = state


def assigned(run: Run, event: Event) -> None:
    """A worker is given a task."""
    data = event.data
    where = f"{run.where}: assignment {event.position}"
    task = there(run.task(data.assignment.task_id), f"{where} of no task of the plan")
    require(not task.assigned, f"{where}: {task.name} was assigned at {task.assigned}")
    require(task.state == "running", f"{where}: {task.name} is {task.state}")
    own = (run.event.position, run.permit, run.asked.action, run.asked.dry_run)
    recorded = (data.requested, data.permit, data.action, data.simulated)
    require(recorded == own, f"{where}: {recorded}, not {own}")
    waits = {one.name: one.finished for one in run.tasks if one.id in task.planned.depends_on and one.finished}
    require(data.after == waits, f"{where}: after {data.after}, not {waits}")
    require(1 <= data.worker <= run.asked.config.concurrency.max_workers, f"{where}: place {data.worker}")
    limits = task.planned.constraints
    given = data.assignment.constraints
    same = (given.max_duration_sec, given.max_retries, given.sandbox) == (
        limits.max_duration_sec, limits.max_retries, limits.sandbox
    )
    same = same and (data.assignment.cwd or "") == task.options.cwd
    require(same and data.assignment.tools == task.planned.tools, f"{where}: not as it was planned")
    task.assigned = event.position


def attempted(run: Run, event: Event) -> None:
    """An attempt is asked for."""
    data: TaskAttemptRequested = event.data
    where = f"{run.where}: attempt {event.position}"
    task = there(run.task(data.task_id), f"{where} of no task of the plan")
    where = f"{where} of {task.name}"
    require(run.begun and not run.asked.plan_only, f"{where}: the run has not begun")
    require(task.state == "running" and not task.finished, f"{where}: it is {task.state}, finished: {task.finished}")
    require(not task.open, f"{where}: attempt {task.open} goes on")
    require(not task.closed, f"{where}: {task.closed}")
    require(task.failures <= task.retries, f"{where}: {task.failures} have failed, {task.retries} retries are allowed")
    require(data.attempt == task.attempts + 1, f"{where} is called the {data.attempt}., {task.attempts} were made")
    require(event.time >= task.not_before, f"{where} at {event.time}, not before {task.not_before}")
    own = (run.permit, run.event.position, task.assigned, run.asked.action, run.asked.dry_run)
    recorded = (data.permit, data.requested, data.assigned, data.action, data.simulated)
    require(recorded == own, f"{where}: {recorded}, not {own}")
    busy = sum(one.size for one in run.tasks if one.open) + task.size
    workers = run.asked.config.concurrency.max_workers
    require(busy <= workers, f"{where}: {busy} of {workers} places are busy")
    task.attempts += 1
    task.open, task.cut = event.position, 0


def called(run: Run, event: Event) -> None:
    """The planner is asked."""
    where = f"{run.where}: planner's call {event.position}"
    require(not run.planned, f"{where}: there is a plan")
    run.calls += 1
    require(run.calls <= CALLS_MAX, f"{where} is number {run.calls} for revision {run.revision}")
    recorded = (event.data.attempt, event.data.revision, event.data.action)
    require(recorded == (run.calls, run.revision, run.asked.action), f"{where}: {recorded}")
    require(not run.mute, f"{where}: asking again cannot help")
    require(not run.call, f"{where}: call {run.call} goes on")
    run.call = event.position


def ended(run: Run, event: Event, request: int) -> None:
    """An attempt, or a call of the planner's, has ended with this event."""
    if request == run.call:
        run.call = 0
        never = isinstance(event.data, EffectRefused | EffectCancelled)
        run.mute = never or (isinstance(event.data, PlannerFailed) and not event.data.again)
        return
    task = next((task for task in run.tasks if task.open == request), None)
    if task is None:
        return  # of a plan that is no more: nothing is attempted there, which is checked when it ends
    task.open = 0
    outcome = event.data
    match outcome:
        case TaskExited() if outcome.violations:
            task.closed = "it did what no tool may"
        case TaskExited(exit_code=0, timed_out=False, exceeded=""):
            task.closed = "it is done"
        case TaskUnstarted(again=False) | TaskExited(again=False):
            task.closed = "it can never start"
        case EffectRefused():
            task.closed = "it was refused"
        case EffectCancelled():
            task.closed = "it was stopped"
        case EffectInterrupted(reason="crash" | "stop" as reason):
            task.failures += reason != "stop"
            task.cut = event.position
        case _:
            task.failures += 1
            base = float(run.asked.config.retries.backoff_base_sec)
            task.not_before = time_after(event.time, min(base**task.failures, DAY_SECONDS))
    violation = isinstance(outcome, TaskExited) and bool(outcome.violations)
    run.security |= violation or (isinstance(outcome, TaskUnstarted) and outcome.security)


def failed(run: Run, event: Event) -> None:
    """A worker says that an attempt was not enough, and when the next begins."""
    data: TaskAttemptFailed = event.data
    where = f"{run.where}: the failure told at {event.position}"
    task = there(run.task(data.task_id), f"{where} is of no task of the plan")
    require(not task.open and data.attempt == task.attempts, f"{where}: attempt {data.attempt}")
    require(not task.closed or not data.retry_at, f"{where}: another attempt is to come, though {task.closed}")
    if data.retry_at == "next start":
        require(task.cut > 0, f"{where}: it was not cut off")
    elif data.retry_at:
        require(data.retry_at >= task.not_before, f"{where}: at {data.retry_at}, not before {task.not_before}")


def finished(run: Run, event: Event) -> None:
    """A worker gives its result."""
    data: TaskFinished = event.data
    where = f"{run.where}: result {event.position}"
    task = there(run.task(data.result.task_id), f"{where} of no task of the plan")
    where = f"{where} of {task.name}"
    require(task.state == "running", f"{where}: it is {task.state}")
    require(not task.finished, f"{where}: it has one at {task.finished}")
    require(not task.open, f"{where}: attempt {task.open} goes on")
    require(data.attempts == task.attempts, f"{where}: {data.attempts} attempts told, {task.attempts} made")
    if data.result.state == "done":
        require(task.closed == "it is done", f"{where}: done, though not by its last attempt")
    else:
        spent = task.failures > task.retries or task.closed not in ("", "it is done")
        require(spent or run.stopping > 0, f"{where}: failed, though it may be attempted again")
    task.finished, task.result, task.holds = event.position, data.result.state, 0


def check_still(run: Run, waiting: Collection[str], live_since: int) -> None:
    """Each running task goes on: it is attempted, waits until its next attempt, or was cut off and waits for the next
    start. ``waiting``: the tasks for which a timer is open. Raises Violation."""
    for task in run.tasks:
        if task.state == "running" and not task.finished and not task.open and task.id not in waiting:
            require(task.cut > live_since, f"{run.where}: nobody goes on with {task.name}")
