"""L1 as an actor: takes requests for runs, gets the OA's permit, keeps the run's time, ends it; pure
(docs/design.md §14.1).

A run goes: requested → plan taken from the request, or asked of L2 → permit → (plan finished → another plan for what
failed, while replans are left) → ended. Each request ends with exactly one of ``run.refused`` (it never began) and
``run.ended``. An early end (by an operator, its time limit, a revoked permit) goes through ``run.stopping``, so that
every task ends before the run does. ``form`` tells which events the first form records besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from pmagent.actors.oa.policy import ACTIONS
from pmagent.actors.orchestra.planning import prompts as planning
from pmagent.actors.orchestra.planning.graph import BadPlan
from pmagent.actors.orchestra.running.coordinator import COORDINATOR
from pmagent.actors.orchestra.running.form import ends_at, permit_subject, plan_made
from pmagent.actors.orchestra.running.run_state import CoordinatedRun
from pmagent.actors.orchestra.running.worker import WORKER
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectCancelRequested, EffectRefused, RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested, OaPermitRevoked
from pmagent.contracts.orchestra_events import (
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlanRequested,
    RunBegun,
    RunCancelAnswered,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunState,
    RunStopping,
    StopCause,
    TasksPlanned,
)
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event, parse_time

RUNS_MAX = 32
WORKERS_MAX = 1_024
"""So many runs are open at once, and so many workers together; a further run is refused (``busy``). Within these
bounds an event that concerns all tasks at once (a start, a refusal, a stop) fits into one reaction of the engine."""

STOPS_MAX = 100
"""So often may all of a run's attempts be cut off by orderly stops, which use up no retry, but a use of the permit."""

GRACE_SECONDS = 120.0
"""So much longer than its run lasts a permit, so that its last attempt can begin until the very end."""

DAY_SECONDS = 86_400.0
"""The longest time of a permit."""

HELPERS = (COORDINATOR, WORKER)
"""L2 and L3: without either no run gets anywhere, nor ends in order."""


class Run(msgspec.Struct, frozen=True):
    """An open run. ``requested``: position of its request; ``timer``: of its time limit's, which has ``fired`` or not;
    ``asked``: of the permit's (0: none is asked for); ``permit``: of the grant. ``ends_at``: log time at which its time
    is over. ``doing``: planning, permit, running or stopping (then ``cause``, ``reasons`` and ``mend`` say why).
    ``done`` and ``failed``: tasks of the last plan that has come to its end."""

    run_id: str
    requested: int
    action: str
    ends_at: str
    replans: int
    plan_only: bool
    request: RunRequested
    doing: Literal["planning", "permit", "running", "stopping"] = "planning"
    timer: int = 0
    fired: bool = False
    asked: int = 0
    permit: int = 0
    revision: int = 0
    cause: StopCause | None = None
    reasons: list[str] = []
    mend: list[str] = []
    done: int = 0
    failed: int = 0


class OrchestratorState(msgspec.Struct, frozen=True):
    """Open runs by id; ``halted``: which of L2 and L3 are halted."""

    runs: dict[str, Run] = {}
    halted: list[str] = []


class Orchestrator:
    """Requests, permits, time limits, and ends of runs."""

    name = "orchestrator"
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        RunRequested, RunCancelRequested, TasksPlanned, PlanMade, PlanFailed, PlanFinished, OaPermitGranted,
        OaPermitRefused, OaPermitRevoked, RequestRefused, EffectRefused, TimerFired, ActorHalted, ActorResumed,
    ))  # fmt: skip

    def initial(self) -> OrchestratorState:
        """No run."""
        return OrchestratorState()

    def evolve(self, state: OrchestratorState, event: Event) -> OrchestratorState:
        """Fold an input or a decision of its own."""
        data = event.data
        if type(data) is OaPermitRefused:
            return state  # decided on
        match data:
            case OaPermitGranted(request=request):
                known = state.runs.get(event.correlation)
                if known is None or known.asked != request or known.request.form is UNSET:
                    return state  # most are others'; of the first form, what is decided on it is folded
                return _with(state, replace(known, doing="running", asked=0, permit=event.position))
            case RunRequested(run_id=run_id) if _objection(state, data) is None:
                timer = 0 if data.form is UNSET else event.position
                over = ends_at(event)
                run = Run(run_id, event.position, data.action, over, data.replans, data.plan_only, data, timer=timer)
                return _with(state, run)
            case RequestRefused(request=request):
                gone = next((run for run in state.runs.values() if run.requested == request), None)
                if gone is not None:  # the engine has answered, because this actor is halted
                    return _without(state, gone.run_id)
            case RunRefused(run_id=run_id, request=request) | RunEnded(run_id=run_id, request=request):
                known = state.runs.get(run_id)
                return state if known is None or known.requested != request else _without(state, run_id)
            case ActorHalted(name=name) | ActorResumed(name=name) if name in HELPERS:
                left = [one for one in state.halted if one != name]
                return replace(state, halted=[*left, name] if isinstance(data, ActorHalted) else left)
            case TimerFired(request=request) if event.correlation in state.runs:
                known = state.runs[event.correlation]
                return _with(state, replace(known, fired=True)) if known.timer == request else state
            case PlanFinished(run_id=run_id, done=done, failed=failed) if run_id in state.runs:
                return _with(state, replace(state.runs[run_id], done=done, failed=failed))
        if event.actor != self.name:
            return state
        found = state.runs.get(getattr(data, "run_id", event.correlation))
        return state if found is None else _with(state, _own(found, event))

    def decide(self, state: OrchestratorState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        data = event.data
        match data:
            case RunRequested(run_id=run_id):
                run = state.runs.get(run_id)
                if run is not None and run.requested == event.position:
                    return list(_begin(run, event))
                if COORDINATOR in state.halted:
                    return []  # it hears the request too, so the engine answers
                return [_refusal(state, event, data)]
            case RunCancelRequested(run_id=run_id):
                return _cancel(state.runs.get(run_id), event, data)
            case ActorHalted(name=name) if name in HELPERS:
                return _without_help(state, name)
            case ActorResumed(name=self.name) if state.halted:
                return _without_help(state, state.halted[0])
            case ActorResumed(name=name) if name in (*HELPERS, self.name):
                return _missed(state, name)
        found = _concerned(state, event)
        return [] if found is None else list(_decided(found, event))


def _with(state: OrchestratorState, run: Run) -> OrchestratorState:
    return replace(state, runs={**state.runs, run.run_id: run})


def _without(state: OrchestratorState, run_id: str) -> OrchestratorState:
    return replace(state, runs={name: run for name, run in state.runs.items() if name != run_id})


def _objection(state: OrchestratorState, asked: RunRequested) -> tuple[str, str, str] | None:
    """Why a request is not taken: a code, the reason, and what mends it; None: it is."""
    if state.halted:
        return "halted", f"the {state.halted[0]} is halted", _HALTED
    if asked.run_id in state.runs:
        return "known", f"the run {asked.run_id} is open already", "ask with a new run id"
    if len(state.runs) >= RUNS_MAX:
        return "busy", f"{len(state.runs)} runs are open", _ROOM
    workers = sum(run.request.config.concurrency.max_workers for run in state.runs.values())
    if workers + asked.config.concurrency.max_workers > WORKERS_MAX:
        return "busy", f"the open runs have {workers} workers, and there are {WORKERS_MAX} at most", _ROOM
    if asked.action not in ACTIONS:
        return "not_permitted", "unknown action", f"use one of: {', '.join(sorted(ACTIONS))}"
    return None


def _refusal(state: OrchestratorState, event: Event, asked: RunRequested) -> RunRefused:
    # The run with this id, if there is one, is another: the state has it from an earlier request.
    others = replace(state, runs={name: run for name, run in state.runs.items() if run.requested != event.position})
    code, reason, mend = _objection(others, asked) or ("halted", "the orchestrator was halted", "ask again")
    return msgspec.convert(
        {"request": event.position, "run_id": asked.run_id, "code": code, "reasons": [reason], "mend": [mend]},
        RunRefused,
    )


def _own(run: Run, event: Event) -> Run:
    """Fold a decision of the orchestrator's."""
    match event.data:
        case TimerRequested():
            return replace(run, timer=event.position)
        case PlanRequested(revision=revision):
            return replace(run, doing="planning", revision=revision)
        case OaPermitRequested():
            return replace(run, doing="permit", asked=event.position)
        case RunBegun(permit=permit):
            return replace(run, doing="running", asked=0, permit=permit)
        case RunStopping(cause=cause, reasons=reasons, mend=mend):
            return replace(run, doing="stopping", asked=0, cause=cause, reasons=reasons, mend=mend)
    return run


def _concerned(state: OrchestratorState, event: Event) -> Run | None:
    """The open run that an event is about."""
    run = state.runs.get(getattr(event.data, "run_id", event.correlation))
    if run is None:
        return None
    match event.data:
        case OaPermitGranted(request=request) | OaPermitRefused(request=request) | RequestRefused(request=request):
            return run if request == run.asked else None  # of the second form, a grant is folded already
        case OaPermitRevoked(permit=permit):
            return run if permit == run.permit else None
        case TimerFired(request=request):
            return run if request == run.timer else None
    return run


def _begin(run: Run, event: Event) -> Iterator[Payload]:
    if run.request.form is UNSET:
        yield TimerRequested(at=run.ends_at, name=f"run {run.run_id}")
    elif run.request.plan is not None:
        yield from _given(run, event)
        return
    yield PlanRequested(run_id=run.run_id, revision=0, request=planning.request_for(run.request))


def _given(run: Run, event: Event) -> Iterator[Payload]:
    """The plan came with the request: nobody is asked for one."""
    planned = CoordinatedRun(run.run_id, run.requested, run.request)
    try:
        plan = planning.given_plan(planned)
    except BadPlan as error:
        yield from _unplanned(run, planning.unfit(planned, error))
        return
    for part in planning.made(planned, plan):
        yield part
        if (made := plan_made(part)) is not None:
            yield from _planned(run, event, made)


def _decided(run: Run, event: Event) -> Iterator[Payload]:
    data = event.data
    match data:
        case PlanMade() | TasksPlanned() if run.doing == "planning" and (made := plan_made(data)) is not None:
            yield from _planned(run, event, made)
        case PlanFailed() if run.cause is None and _is_late(run, event):
            yield _stopping(run, "timed_out", [_over_time(run)], [_LONGER])
        case PlanFailed():
            yield from _unplanned(run, data)
        case OaPermitGranted():
            yield RunBegun(run_id=run.run_id, revision=run.revision, permit=event.position)
        case OaPermitRefused(reasons=reasons, mend=mend):
            yield from _not_permitted(run, reasons, mend)
        case RequestRefused(name=name, reason=reason):
            yield from _not_permitted(run, [f"{name} is {reason}"], [_HALTED])
        case OaPermitRevoked(reason=reason) if run.cause is None:
            yield _stopping(run, "stopped", [f"the OA took the permit back: {reason}"], [_STATUS])
        case EffectRefused() if run.doing == "running" and _is_late(run, event):
            yield _stopping(run, "timed_out", [_over_time(run)], [_LONGER])
        case EffectRefused(reasons=reasons) if run.doing == "running":
            yield _stopping(run, "stopped", [f"an attempt was not permitted: {'; '.join(reasons)}"], [_STATUS])
        case TimerFired() if run.cause is None:
            yield _stopping(run, "timed_out", [_over_time(run)], [_LONGER])
        case PlanFinished():
            yield from _finished(run, data)


_HALTED = "pmagent log tail --type actor.halted shows where; start a version that does not fail"
_STATUS = "pmagent status shows the kernel's mode, its reasons and what mends them; then run it again"
_ROOM = "wait until some have ended, or cancel some"
_LONGER = "raise policies.max_total_duration_sec, or make the plan shorter"


def _is_late(run: Run, event: Event) -> bool:
    """Whether the run's time was over before its timer could say so: who starts after a long pause finds permits
    expired first."""
    return event.time >= run.ends_at


def _over_time(run: Run) -> str:
    return f"the run's time of {run.request.config.policies.max_total_duration_sec:g} s is over"


def _stopping(run: Run, cause: StopCause, reasons: list[str], mend: list[str]) -> RunStopping:
    return RunStopping(run_id=run.run_id, cause=cause, reasons=reasons, mend=mend)


def _planned(run: Run, event: Event, made: PlanMade) -> Iterator[Payload]:
    if run.plan_only:
        yield from _ended(run, "planned", [], [], 0, 0)
        return
    left = (parse_time(run.ends_at) - parse_time(event.time)).total_seconds() + GRACE_SECONDS
    at_once = min(made.tasks, run.request.config.concurrency.max_workers)
    yield OaPermitRequested(
        action=run.action, subject=permit_subject(run.run_id), holder=WORKER, uses=made.attempts + at_once * STOPS_MAX,
        seconds=min(max(left, GRACE_SECONDS), DAY_SECONDS),
    )


def _unplanned(run: Run, failed: PlanFailed) -> Iterator[Payload]:
    """There is no plan: the run never began, or goes no further."""
    if run.cause is not None:
        yield from _ended(run, run.cause, run.reasons, run.mend, run.done, run.failed)
    elif run.revision:
        why = ["there is no other plan", *failed.reasons]
        yield from _ended(run, "failed", why, failed.mend, run.done, run.failed)
    else:
        yield from _over(run)
        yield RunRefused(
            request=run.requested, run_id=run.run_id, code="no_plan" if failed.code == "stopped" else failed.code,
            reasons=failed.reasons, mend=failed.mend, security=failed.security,
        )


def _not_permitted(run: Run, reasons: list[str], mend: list[str]) -> Iterator[Payload]:
    if run.revision:
        yield _stopping(run, "stopped", ["no permit to go on", *reasons], mend)
        return
    yield from _over(run)
    yield RunRefused(request=run.requested, run_id=run.run_id, code="not_permitted", reasons=reasons, mend=mend)


def _finished(run: Run, finished: PlanFinished) -> Iterator[Payload]:
    done, failed, security = finished.done, finished.failed, finished.security
    if run.cause is not None:
        yield from _ended(run, run.cause, run.reasons, run.mend, done, failed, security=security)
    elif failed and run.revision < run.replans and not security:
        yield PlanRequested(run_id=run.run_id, revision=run.revision + 1, request=planning.request_for(run.request))
    elif failed:
        why = f"{failed} of {done + failed + (finished.tolerated or 0)} tasks failed"
        yield from _ended(run, "failed", [why], [], done, failed, security=security)
    else:
        yield from _ended(run, "done", [], [], done, failed, security=security)


def _ended(
    run: Run, state: RunState, reasons: list[str], mend: list[str], done: int, failed: int, *, security: bool = False
) -> Iterator[Payload]:
    yield from _over(run)
    yield RunEnded(
        request=run.requested, run_id=run.run_id, state=state, reasons=reasons, mend=mend, done=done, failed=failed,
        security=security, permit=UNSET if run.request.form is UNSET or not run.permit else run.permit,
    )


def _over(run: Run) -> Iterator[Payload]:
    """The run needs its timer no more; one that is the request itself ends with the answer."""
    if not run.fired and run.request.form is UNSET:
        yield EffectCancelRequested(request=run.timer)


def _cancel(run: Run | None, event: Event, asked: RunCancelRequested) -> list[Payload | Correlated]:
    if run is None or run.cause is not None:
        text = "no such run is open" if run is None else "it is ending already"
        return [RunCancelAnswered(request=event.position, run_id=asked.run_id, accepted=False, text=text)]
    return [
        RunCancelAnswered(request=event.position, run_id=asked.run_id, accepted=True),
        Correlated(_stopping(run, "cancelled", [asked.reason.strip() or "cancelled"], []), run.run_id),
    ]


def _without_help(state: OrchestratorState, name: str) -> list[Correlated]:
    """The coordinator or the worker is halted: no run can continue or end in order."""
    return [
        Correlated(decided, run.run_id)
        for run in state.runs.values()
        for decided in _ended(run, "failed", [f"the {name} is halted"], [_HALTED], run.done, run.failed)
    ]


def _missed(state: OrchestratorState, name: str) -> list[Correlated]:
    """A resumed actor may have missed any event, a stop included: every run ends, for its own reason if it has one."""
    why = f"the {name} was halted, and what happened meanwhile was not decided on"
    return [
        Correlated(_stopping(run, run.cause or "stopped", run.reasons or [why], run.mend), run.run_id)
        for run in state.runs.values()
    ]
