"""L3 as an actor: carries out assignments by attempts, with pauses between; pure (docs/design.md §14.6).

Attempts are 1 + the task's retries. Before the n-th retry base to the power n seconds pass (a durable timer). A failure
that another attempt cannot change (a policy's refusal, a missing program, a violation) is final. Each assignment
ends with exactly one ``task.finished``.

An attempt that a crash cut off counts, one that an orderly stop cut off does not; either is repeated when something
that takes runs up has started (``LIVE``). A timer that ends otherwise than by firing is taken to have fired.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from pmagent.actors.orchestra.running.task_state import Job, concluded, finished, folded, next_attempt
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EFFECT_ENDS, EffectCancelRequested, EffectEnd
from pmagent.contracts.orchestra_events import (
    RunEnded,
    RunStopping,
    TaskAssigned,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

WORKER: Final = "worker"
"""The actor's name: the holder of runs' permits."""

LIVE: Final[frozenset[str]] = frozenset(("daemon", "orchestra.run"))
"""The surfaces that take up runs of an earlier process; a command that opens the log for something else does not."""


class WorkerState(msgspec.Struct, frozen=True):
    """Assignments without a result yet, by task; ``stopping``: open runs that are to end, and why; ``live``: whether
    what runs now takes runs up."""

    jobs: dict[str, Job] = {}
    stopping: dict[str, str] = {}
    live: bool = True


class Worker:
    """Attempts, retries and results of all assigned tasks."""

    name = WORKER
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (TaskAssigned, TaskExited, TaskUnstarted, *EFFECT_ENDS, TimerFired, RunStopping, RunEnded, DaemonStarted)
    )

    def initial(self) -> WorkerState:
        """No assignment."""
        return WorkerState()

    def evolve(self, state: WorkerState, event: Event) -> WorkerState:
        """Fold an input or a decision of its own."""
        data = event.data
        match data:
            case DaemonStarted(surface=surface):
                return replace(state, live=surface in LIVE)
            case TaskAssigned():
                return _with(state, Job(event.position, data, stop=state.stopping.get(data.run_id, "")))
            case TaskFinished(result=result):
                return replace(state, jobs={name: job for name, job in state.jobs.items() if name != result.task_id})
            case RunStopping() | RunEnded():
                return _stopping(state, data)
        job = _concerned(state, event)
        return state if job is None else _with(state, _evolved(job, event))

    def decide(self, state: WorkerState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        data = event.data
        match data:
            case DaemonStarted() if state.live:
                waiting = [job for job in state.jobs.values() if job.doing in ("ready", "held")]
                return [Correlated(next_attempt(job), job.assigned.run_id) for job in waiting]
            case RunStopping(run_id=run_id):
                jobs = [job for job in state.jobs.values() if job.assigned.run_id == run_id]
                return [decided for job in jobs for decided in _stopped(job)]
            case TaskAssigned(assignment=assignment):
                job = state.jobs[assignment.task_id]
                if job.stop:  # the run began and was stopped by one reading of the surfaces
                    return [finished(job, None, "failed", job.stop)]
                return [next_attempt(job)] if state.live else []
        over = _decided_on(state, event)
        if over is None:
            return []
        if over.doing == "ready":
            return [next_attempt(over)] if state.live else []
        return concluded(over, event)


def _with(state: WorkerState, job: Job) -> WorkerState:
    return replace(state, jobs={**state.jobs, job.task_id: job})


def _concerned(state: WorkerState, event: Event) -> Job | None:
    """The job that an outcome, the end of a pause, or a decision of the worker's own is about."""
    data = event.data
    match data:
        case TaskAttemptRequested(task_id=task_id):
            return state.jobs.get(task_id)
        case TimerRequested(name=name):
            return state.jobs.get(_task_of(name))
        case TaskExited(task_id=task_id, request=request) | TaskUnstarted(task_id=task_id, request=request):
            job = state.jobs.get(task_id)
        case TimerFired(name=name, request=request):
            job = state.jobs.get(_task_of(name))
        case _:
            request = data.request if isinstance(data, EffectEnd) else 0
            job = next((one for one in state.jobs.values() if one.request == request), None) if request else None
    return job if job is not None and job.request == request and job.doing in ("attempt", "pause") else None


def _task_of(timer: str) -> str:
    return timer.removeprefix("retry ")


def _evolved(job: Job, event: Event) -> Job:
    match event.data:
        case TaskAttemptRequested(attempt=attempt):
            return replace(job, doing="attempt", request=event.position, attempt=attempt)
        case TimerRequested():
            return replace(job, doing="pause", request=event.position)
    return replace(job, doing="ready") if job.doing == "pause" else folded(job, event)


def _decided_on(state: WorkerState, event: Event) -> Job | None:
    """The job that the event has brought to a point where something follows: its attempt or pause is over."""
    request = getattr(event.data, "request", 0)
    job = state.jobs.get(getattr(event.data, "task_id", ""))
    if job is None:
        job = next((one for one in state.jobs.values() if request and one.request == request), None)
    return job if job is not None and job.request == request and job.doing in ("ready", "held", "ended") else None


def _stopping(state: WorkerState, data: RunStopping | RunEnded) -> WorkerState:
    """The run is to end: each of its jobs knows why. When it has ended it has none left."""
    if isinstance(data, RunEnded):
        left = {name: job for name, job in state.jobs.items() if job.assigned.run_id != data.run_id}
        stopping = {run: why for run, why in state.stopping.items() if run != data.run_id}
        return replace(state, jobs=left, stopping=stopping)
    why = "; ".join(data.reasons)
    return replace(state, stopping={**state.stopping, data.run_id: why}, jobs={
        name: replace(job, stop=why) if job.assigned.run_id == data.run_id else job for name, job in state.jobs.items()
    })


def _stopped(job: Job) -> list[Payload]:
    """The decisions that end a job of a stopping run; an open attempt is cancelled first."""
    if job.doing == "attempt":
        return [EffectCancelRequested(request=job.request)]
    timer = [EffectCancelRequested(request=job.request)] if job.doing == "pause" else []
    return [*timer, finished(job, None, "failed", job.stop)]
