"""Laws of runs and their tasks, computed from the events themselves.

It holds for any prefix of a history. The laws of attempts, of their pauses and of the planner's calls are in
``invariants_attempts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from pmagent.actors.orchestra.running.form import steps
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectCancelRequested, EffectRefused, RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra_events import (
    PlanFinished,
    PlanMade,
    PlannerCallRequested,
    PlanRequested,
    RunBegun,
    RunCancelAnswered,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAssigned,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
)
from pmagent.events.event import Event, time_after
from pmagent.replay.areas import invariants_attempts as attempts
from pmagent.replay.areas.invariants_attempts import LIVE, Run, Task
from pmagent.replay.simulation.world import require, there

STEPS: Final = {
    "start": ("planned", "running"), "succeed": ("running", "done"), "fail": ("running", "failed"),
    "block": ("planned", "blocked"), "unblock": ("blocked", "planned"), "give_up": ("blocked", "failed"),
    "skip": ("blocked", "done"),
}
"""The specification's transitions, by the word that the log has for each."""

ENDED: Final = ("done", "failed")


def check_runs(history: Sequence[Event]) -> None:
    """Runs keep to their plans, configurations and permits, and each has one end. Raises Violation."""
    check = RunCheck()
    for event in history:
        check.take(event)


class RunCheck:
    """The history so far, as far as runs are concerned."""

    def __init__(self) -> None:
        self.open: dict[str, Run] = {}
        """Open runs by id."""
        self._requests: dict[int, Run] = {}
        self._of_effect: dict[int, Run] = {}
        self._timers: dict[int, tuple[Event, Run]] = {}
        self._grants: dict[int, Event] = {}
        self._live, self._live_since = True, 0

    def take(self, event: Event) -> None:
        """The next event. Raises Violation."""
        if event.kind == "fact" and not event.type.startswith("log."):
            self.check_still()
        request = event.data.request if isinstance(event.data, EffectRefused) else 0
        ended = event.causation if event.kind == "fact" else request
        if (run := self._of_effect.pop(ended, None)) is not None:
            attempts.ended(run, event, ended)
        self._timer(event, ended)
        self._event(event)

    def check_still(self) -> None:
        """Everything that follows from the last fact has been decided: nobody waits for nothing. Raises Violation."""
        for run in self.open.values():
            if not run.begun or run.stopping or run.finished:
                continue
            ready = next((task for task in run.tasks if task.state == "planned"), None)
            fits = ready is not None and ready.size <= run.free
            require(not fits, f"{run.where}: {ready.name if ready else ''} may start, has a place, and does not")
            _check_waiting(run)
            if self._live:
                timers = [timer.data for timer, own in self._timers.values() if own is run]
                waiting = {one.name.removeprefix("retry ") for one in timers if isinstance(one, TimerRequested)}
                attempts.check_still(run, waiting, self._live_since)

    def _event(self, event: Event) -> None:
        data = event.data
        match data:
            case DaemonStarted(surface=surface):
                self._live = surface in LIVE
                self._live_since = event.position if self._live else self._live_since
            case RunRequested(run_id=run_id):
                run = self._requests[event.position] = Run(event)
                if data.form is not UNSET:
                    run.revision += data.plan is not None
                    self._timers[event.position] = event, run
                if run_id not in self.open:
                    self.open[run_id] = run
            case RunRefused(request=request) | RunEnded(request=request):
                self._over(event, self._requests[request])
            case RequestRefused(request=request) if request in self._requests:
                self._close(self._requests[request])
            case PlannerCallRequested() | TaskAttemptRequested():
                self._effect(event)
            case OaPermitGranted() | OaPermitRevoked() | RunCancelRequested() | RunCancelAnswered():
                self._from_outside(event)
            case _:
                if (known := self.open.get(getattr(data, "run_id", ""))) is not None:
                    self._steps(known, event)

    def _from_outside(self, event: Event) -> None:
        """Requests of the OA and the operator."""
        data = event.data
        match data:
            case OaPermitGranted():
                self._grants[event.position] = event
                known = self.open.get(event.correlation)
                if known is not None and known.planned and not (known.begun or known.stopping):
                    self._steps(known, event, awaited=known.event.position)
            case OaPermitRevoked(permit=permit, reason=reason):
                for run in self.open.values():
                    if run.permit == permit:
                        require(reason != "its run is over", f"{run.where} is open, and its permit is gone with it")
                        run.must_end("stopped")
            case RunCancelRequested(run_id=run_id) if run_id in self.open:
                self.open[run_id].must_end("cancelled")
            case RunCancelAnswered(run_id=run_id, accepted=accepted):
                cancelling = run_id in self.open and not self.open[run_id].stopping
                require(accepted == cancelling, f"cancelling the run {run_id} was answered with {accepted}")

    def _effect(self, event: Event) -> None:
        run = there(self.open.get(event.data.run_id), f"{event.type} {event.position} is for no open run")
        where = f"{event.type} {event.position} of {run.where}"
        stopping = 0 < run.stopping <= event.causation  # as in _of_run
        require(not stopping, f"{where}: the run is to end since {run.stopping}")
        require(self._live, f"{where}: by a process that takes no runs up")
        self._of_effect[event.position] = run
        if isinstance(event.data, TaskAttemptRequested):
            attempts.attempted(run, event)
        else:
            attempts.called(run, event)

    def _steps(self, run: Run, event: Event, *, awaited: int = 0) -> None:
        for step in steps(event, run.asked, run.revision, awaited=awaited):
            self._of_run(run, event, step)

    def _of_run(self, run: Run, event: Event, data: Any) -> None:
        """A step of a run, by a message between L1, L2 and L3."""
        match data:
            case PlanRequested():
                _plan_requested(run, data)
            case TasksPlanned(tasks=tasks):
                run.tasks += [Task(task) for task in tasks]
            case PlanMade():
                _plan_made(run, data)
            case RunBegun():
                self._begun(run, data)
            case TasksChanged():
                # A decision on an event before the stop may be recorded after it.
                stopping = 0 < run.stopping <= event.causation
                for change in data.changes:
                    require(not stopping or change.step != "start", f"{run.where}: a task starts though it is to end")
                    _changed(run, change)
            case TaskAssigned():
                attempts.assigned(run, event)
            case TaskAttemptFailed():
                attempts.failed(run, event)
            case TaskFinished():
                attempts.finished(run, event)
            case PlanFinished():
                _plan_finished(run, data)
            case RunStopping(cause=cause):
                require(not run.stopping, f"{run.where} is stopped a second time")
                require(run.must in ("", cause), f"{run.where}: {cause}, though it must be {run.must}")
                asked, limit = run.event, run.asked.config.policies.max_total_duration_sec
                early = cause == "timed_out" and event.time < time_after(asked.time, float(limit))
                require(not early, f"{run.where} has timed out early")
                run.stopping, run.must = event.position, cause

    def _begun(self, run: Run, data: RunBegun) -> None:
        grant = self._grants.get(data.permit)
        right = grant is not None and (grant.data.subject, grant.data.holder, grant.data.action) == (
            f"run:{run.asked.run_id}", "worker", run.asked.action
        )
        require(right, f"{run.where} begins under a permit that is none for it")
        require(run.planned and not run.asked.plan_only, f"{run.where} begins though it was to be planned only")
        require(not run.stopping, f"{run.where} begins though it is to end")
        run.begun, run.permit = True, data.permit

    # --- timers and ends ---------------------------------------------------------------------------------------------

    def _timer(self, event: Event, ended: int) -> None:
        timer = self._timers.pop(ended, None)
        if timer is not None and isinstance(event.data, TimerFired) and timer[0].actor != "worker":
            timer[1].must_end("timed_out")
        if isinstance(event.data, TimerRequested) and event.correlation in self.open:
            run = self.open[event.correlation]
            over = time_after(run.event.time, float(run.asked.config.policies.max_total_duration_sec))
            late = event.actor == "orchestrator" and event.data.at != over
            require(not late, f"{run.where}: its time is over at {over}, and its timer fires at {event.data.at}")
            self._timers[event.position] = event, run
        elif isinstance(event.data, EffectCancelRequested):
            self._timers.pop(event.data.request, None)

    def _over(self, event: Event, run: Run) -> None:
        where = f"{run.where} is over at {event.position}"
        require(not run.over, f"{where}, and was at {run.over}")
        self._timers.pop(run.event.position, None)
        left = [timer.position for timer, own in self._timers.values() if own is run]
        require(not left, f"{where}; its timer goes on: {left}")
        if isinstance(event.data, RunEnded):
            _ended(run, event.data, where)
        else:
            require(not run.begun, f"{where}: refused though it had begun")
            first = self.open[run.asked.run_id] is run
            require(event.data.code != "known" or not first, f"{where}: refused as if another were open")
        open_call = run.call and run.call in self._of_effect
        require(not open_call or run.stopping > 0, f"{where}; a call of the planner goes on")
        run.over = event.position
        self._close(run)

    def _close(self, run: Run) -> None:
        if self.open.get(run.asked.run_id) is run:
            del self.open[run.asked.run_id]


def _check_waiting(run: Run) -> None:
    """A blocked task waits for tasks of which some have not ended."""
    states = {task.id: task.state for task in run.tasks}
    require(not set(states.values()) <= set(ENDED), f"{run.where}: all tasks have ended, and the plan has not")
    for task in run.tasks:
        if task.state == "blocked":
            outcomes = _outcomes(run, task)
            waits = "" in outcomes and ("bad" not in outcomes or task.options.condition)
            require(bool(waits), f"{run.where}: {task.name} waits for {sorted(outcomes)}")


def _outcomes(run: Run, task: Task) -> set[str]:
    """How those that a task waits for have ended."""
    return {one.outcome for one in run.tasks if one.id in task.planned.depends_on}


def _failed_above(run: Run, task: Task) -> bool:
    """Whether a task that it waits for has failed, or one further up; each stands behind those that it waits for."""
    above = set(task.planned.depends_on)
    for one in reversed(run.tasks):
        above |= set(one.planned.depends_on) if one.id in above else set()
    return any(one.outcome == "bad" for one in run.tasks if one.id in above)


def _may_run(run: Run, task: Task, outcomes: set[str]) -> bool:
    """Whether a task's condition holds; told without the code that reads conditions."""
    match task.options.condition:
        case "":
            return outcomes <= {"good"}
        case "always()":
            return "" not in outcomes
        case "failure()":
            return "" not in outcomes and _failed_above(run, task)
    raise AssertionError(f"the simulation draws no condition {task.options.condition}")


def _plan_requested(run: Run, data: PlanRequested) -> None:
    where = f"{run.where}: revision {data.revision}"
    require(data.revision == run.revision + 1 <= run.asked.replans, f"{where} follows {run.revision}")
    require(not run.stopping, f"{where} is asked for though the run is to end")
    if data.revision:
        failed = [task for task in run.tasks if task.outcome == "bad"]
        require(run.finished and bool(failed), f"{where} is asked for though nothing failed")
        require(not run.security, f"{where} is asked for after a violation")
    run.revision, run.calls, run.mute = data.revision, 0, False
    run.kept = [task for task in run.tasks if task.state == "done" and not task.skipped]
    run.tasks, run.planned, run.begun, run.finished = list(run.kept), False, False, False


def _plan_made(run: Run, made: PlanMade) -> None:
    """The plan can be run, and is within the configuration: held against it without the code that made it."""
    where, config = f"{run.where}: plan {made.revision}", run.asked.config
    if not made.revision:
        run.kept = [task for task in run.tasks if task.name in run.asked.done]
        require(run.tasks[: len(run.kept)] == run.kept, f"{where}: tasks that are done do not come first")
        for task in run.kept:
            task.state, task.finished = "done", run.asked.done[task.name]
    new = run.tasks[len(run.kept) :]
    require((made.tasks, made.kept) == (len(new), len(run.kept)), f"{where} counts {made.tasks} and {made.kept}")
    seen = {task.id for task in run.kept}
    for task in new:
        own = task.planned
        require(task.id not in seen, f"{where} lists {task.name} twice")
        require(seen.issuperset(own.depends_on), f"{where}: {task.name} waits for what does not come before it")
        seen.add(task.id)
        require(set(own.tools) <= set(config.whitelist_tools), f"{where}: {task.name} starts {own.tools}")
        limits = own.constraints
        require(limits.max_retries <= config.retries.max, f"{where}: {task.name} has {limits.max_retries} retries")
        require(task.size <= config.concurrency.max_workers, f"{where}: {task.name} takes {task.size} places")
        require(limits.max_duration_sec <= config.policies.max_task_duration_sec, f"{where}: {task.name} takes long")
        require(limits.sandbox.net == "deny" or config.policies.allow_network, f"{where}: {task.name} is online")
    require(made.attempts == sum(1 + task.retries for task in new), f"{where}: {made.attempts} attempts")
    run.planned = True


def _changed(run: Run, change: Any) -> None:
    """One step of one task."""
    task = run.task(change.task_id)
    where = f"{run.where}: {task.name if task else change.task_id} {change.step}s"
    require(task is not None, f"{where}, and is no task of the plan")
    assert task is not None, "just required"
    require((run.begun or run.stopping > 0) and not run.finished, f"{where} though the plan does not run")
    require((task.state, change.state) == STEPS[change.step], f"{where} from {task.state} to {change.state}")
    outcomes = _outcomes(run, task)
    ready, lost = _may_run(run, task, outcomes), "bad" in outcomes and not task.options.condition
    match change.step:
        case "start":
            require(run.begun and ready, f"{where} after {sorted(outcomes)}")
            earlier = [one.name for one in run.tasks[: run.tasks.index(task)] if one.state == "planned"]
            require(not earlier, f"{where} before {earlier}, which come first")
            require(task.size <= run.free, f"{where} on {task.size} places, {run.free} are free")
            task.holds = task.size
        case "unblock":
            require(ready, f"{where} after {sorted(outcomes)}")
        case "block":
            require(not ready or run.stopping > 0, f"{where} and waits for nothing")
        case "give_up":
            require(lost or run.stopping > 0, f"{where} though nothing failed that it waits for")
        case "skip":
            require("" not in outcomes and not ready and not lost, f"{where} after {sorted(outcomes)}")
            task.skipped = True
        case "succeed" | "fail":
            result = "done" if change.step == "succeed" else "failed"
            require(task.result == result, f"{where}; its result is {task.result or 'not there'}")
    task.state = change.state


def _plan_finished(run: Run, data: PlanFinished) -> None:
    where = f"{run.where}: plan {data.revision} is finished"
    require(not run.finished, f"{where} a second time")
    going = [task.name for task in run.tasks if task.state not in ENDED]
    require(not going, f"{where} though {going} have not ended")
    tolerated = sum(task.state == "failed" and task.outcome == "good" for task in run.tasks)
    require((data.tolerated or 0) == tolerated, f"{where}: {data.tolerated} may have failed, not {tolerated}")
    require((data.done, data.failed) == run.counts, f"{where} with {data.done} and {data.failed}, not {run.counts}")
    require(data.security == run.security, f"{where}: a violation is told: {data.security}")
    run.finished, run.last = True, run.counts


def _ended(run: Run, data: RunEnded, where: str) -> None:
    require(not run.must or data.state == run.must, f"{where} as {data.state}, though it must be {run.must}")
    require((data.state == "planned") == (run.asked.plan_only and not run.must), f"{where} as {data.state}")
    going = [task.name for task in run.tasks if run.begun and task.state not in ENDED]
    require(not going, f"{where} though {going} have not ended")
    working = [task.name for task in run.tasks if task.open]
    require(not working, f"{where} though {working} are attempted")
    require((data.done, data.failed) == run.last, f"{where} with {data.done} and {data.failed}, not {run.last}")
    require(data.security == run.security, f"{where}: a violation is told: {data.security}")
    if data.state == "done":
        require(all(task.outcome != "bad" for task in run.tasks), f"{where} as done")
    if data.state == "failed":
        failed = run.last[1] > 0 or run.revision > 0
        require(failed, f"{where} as failed, and nothing failed")


def check_runs_idle(states: Mapping[str, Any]) -> None:
    """After everything came to rest no run is open. Raises Violation."""
    left = {
        "runs of the orchestrator": states["orchestrator"].runs, "runs of the coordinator": states["coordinator"].runs,
        "jobs of the worker": states["worker"].jobs,
    }
    for what, those in left.items():
        require(not those, f"{what} are open though nothing happens any more: {len(those)}")
