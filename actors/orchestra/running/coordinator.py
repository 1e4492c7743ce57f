"""L2 as an actor: makes plans, or gets them made, and gives their tasks to workers in order; pure
(docs/design.md §14.1).

A plan goes: asked for by L1 → asked of the planner under a permit, up to three times with what was wrong told → held
against the configuration → made; or L1 has it from the request. A run that has its permit goes on with each worker's
result: its dependents are freed or given up, and those that are ready start in the plan's order while places are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from pmagent.actors.orchestra.planning import prompts as planning
from pmagent.actors.orchestra.planning.graph import BadPlan
from pmagent.actors.orchestra.running import run_state as fold
from pmagent.actors.orchestra.running.run_state import CoordinatedRun
from pmagent.actors.orchestra.running.worker import LIVE
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    EffectCancelled,
    EffectCancelRequested,
    EffectEnd,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.orchestra_events import (
    PLANNER_SECONDS,
    PLANNER_TRIES,
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    PlannerReplied,
    PlanRequested,
    RunBegun,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAssigned,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
)
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

COORDINATOR = "coordinator"
"""The actor's name: the holder of the planner's permits."""


_BEGINNINGS: Final = frozenset((DaemonStarted, RunRequested))
"""Without a run nothing else is heeded."""


class CoordinatorState(msgspec.Struct, frozen=True):
    """Open runs by id; ``live``: whether what runs now takes runs up."""

    runs: dict[str, CoordinatedRun] = {}
    live: bool = True


class Coordinator:
    """Plans and schedules."""

    name = COORDINATOR
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        RunRequested, RunRefused, RunEnded, PlanRequested, TasksPlanned, OaPermitRequested, OaPermitGranted,
        OaPermitRefused, RequestRefused, PlannerReplied, PlannerFailed, *EFFECT_ENDS, RunBegun, TaskFinished,
        RunStopping, DaemonStarted,
    ))  # fmt: skip

    def initial(self) -> CoordinatorState:
        """No run."""
        return CoordinatorState()

    def evolve(self, state: CoordinatorState, event: Event) -> CoordinatorState:
        """Fold an input or a decision of its own."""
        data = event.data
        if not state.runs and type(data) not in _BEGINNINGS:
            return state  # the ends of what others have asked for
        match data:
            case DaemonStarted(surface=surface):
                return replace(state, live=surface in LIVE)
            case RunRequested(run_id=run_id):
                if run_id in state.runs:
                    return state  # L1 refuses it
                return _with(state, CoordinatedRun(run_id, event.position, data))
            case RunRefused(run_id=run_id, request=request) | RunEnded(run_id=run_id, request=request):
                return _without(state, run_id, request)
            case RequestRefused(request=request) if _asked_at(state, event, request):
                return _without(state, event.correlation, request)  # L1 is halted
        run = _concerned(state, event)
        return state if run is None else _with(state, _evolved(run, event))

    def decide(self, state: CoordinatorState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        data = event.data
        if isinstance(data, DaemonStarted):
            return [
                Correlated(decided, run.run_id)
                for run in state.runs.values()
                if run.doing == "waiting" and state.live
                for decided in _call(run)
            ]
        run = _concerned(state, event)
        return [] if run is None else _decided(state, run, event)


def _with(state: CoordinatorState, run: CoordinatedRun) -> CoordinatorState:
    return replace(state, runs={**state.runs, run.run_id: run})


def _asked_at(state: CoordinatorState, event: Event, request: int) -> bool:
    """Whether ``request`` is the one for the open run that the event belongs to."""
    run = state.runs.get(event.correlation)
    return run is not None and run.requested == request


def _without(state: CoordinatorState, run_id: str, request: int) -> CoordinatorState:
    """Without the run, if it was requested so; its id may be another's by now."""
    known = state.runs.get(run_id)
    if known is None or known.requested != request:
        return state
    return replace(state, runs={name: run for name, run in state.runs.items() if name != run_id})


def _concerned(state: CoordinatorState, event: Event) -> CoordinatedRun | None:
    """The open run that an event is about. Everything of a run has its id as correlation; what ends an effect of
    another actor is none of ours."""
    run = state.runs.get(getattr(event.data, "run_id", event.correlation))
    if run is None:
        return None
    if isinstance(event.data, OaPermitGranted) and event.position in (run.planner_permit, run.permit):
        return run  # folded already: it is no longer waited for
    request = getattr(event.data, "request", None)
    if isinstance(event.data, _ANSWERS) and request != run.request:
        return None
    return run


_ANSWERS = (OaPermitGranted, OaPermitRefused, RequestRefused, PlannerReplied, PlannerFailed, EffectEnd)


def _evolved(run: CoordinatedRun, event: Event) -> CoordinatedRun:
    data = event.data
    match data:
        case RunBegun(permit=permit):
            return replace(run, doing="running", permit=permit)
        case TasksChanged(changes=changes):
            return fold.changed(run, changes)
        case TaskAssigned(assignment=assignment):
            return fold.started(run, assignment.task_id)
        case TaskFinished():
            return fold.task_ended(run, event.position, data)
        case RunStopping(reasons=reasons):
            return replace(run, doing="stopping", why="; ".join(reasons))
        case PlanFinished():
            return replace(run, doing="over")
    return _planning(run, event)


def _planning(run: CoordinatedRun, event: Event) -> CoordinatedRun:
    """Fold what belongs to the making of a plan."""
    data = event.data
    match data:
        case PlanRequested(revision=revision) if revision:
            return fold.again(run, revision)
        case OaPermitRequested():
            if event.actor == COORDINATOR:
                return replace(run, doing="permit", request=event.position)
            return run if run.asked.form is UNSET else replace(run, request=event.position)
        case OaPermitGranted() if run.board is not None:
            return replace(run, doing="running", request=0, permit=event.position) if run.doing == "planned" else run
        case OaPermitGranted():
            return replace(run, doing="waiting", request=0, planner_permit=event.position)
        case PlannerCallRequested(attempt=attempt):
            return replace(run, doing="call", request=event.position, attempt=attempt)
        case PlanFailed():
            return replace(run, doing="over")
        case TasksPlanned(tasks=tasks, made=made):
            run = replace(run, tasks=[*run.tasks, *tasks])
            return run if made is UNSET else fold.planned(run)
        case PlanMade():
            return fold.planned(run)
    if isinstance(data, PlannerReplied | PlannerFailed | EffectEnd) and run.doing == "call":
        return replace(run, doing="waiting")  # for what is decided on it, or for a start that takes runs up
    return run


def _decided(state: CoordinatorState, run: CoordinatedRun, event: Event) -> Iterable[Payload]:
    data = event.data
    match data:
        case PlanRequested(revision=revision):
            if run.asked.plan is not None and not revision:
                return _from_request(run)
            return [_permit(run)]
        case OaPermitGranted() if run.doing == "running":
            return list(fold.begin(run))
        case OaPermitGranted() if run.doing == "waiting":
            return _call(run) if state.live else []
        case OaPermitRefused(reasons=reasons, mend=mend) if run.doing == "permit":
            return [_failed(run, "not_permitted", ["no permit to ask the planner", *reasons], mend)]
        case RequestRefused(name=name) if run.doing == "permit":
            return [_failed(run, "not_permitted", [f"{name} is halted"], [_HALTED])]
        case PlannerReplied(text=text) if run.doing == "waiting":
            return _from_answer(run, text, live=state.live)
        case RunBegun():
            return list(fold.begin(run))
        case TaskFinished():
            return list(fold.go_on(run, data))
        case RunStopping():
            return list(_stopped(run))
    if isinstance(data, PlannerFailed | EffectEnd) and run.doing == "waiting":
        next_start = isinstance(data, EffectInterrupted) and data.with_process
        return _no_answer(run, data, live=state.live and not next_start)
    return []


_HALTED = "pmagent log tail --type actor.halted shows where; start a version that does not fail"


def _failed(run: CoordinatedRun, code: str, reasons: list[str], mend: list[str]) -> PlanFailed:
    return msgspec.convert(
        {"run_id": run.run_id, "revision": run.revision, "code": code, "reasons": reasons, "mend": mend}, PlanFailed,
    )


def _permit(run: CoordinatedRun) -> OaPermitRequested:
    """For as long as the run may last: a call that was cut off is made again, whenever the next start is."""
    return OaPermitRequested(
        action=run.asked.action, subject=f"planner:{run.run_id}", holder=COORDINATOR, uses=PLANNER_TRIES,
        seconds=run.asked.config.policies.max_total_duration_sec,
    )


def _from_request(run: CoordinatedRun) -> list[Payload]:
    try:
        return list(planning.made(run, planning.given_plan(run)))
    except BadPlan as error:
        return [planning.unfit(run, error)]


def _from_answer(run: CoordinatedRun, text: str, *, live: bool) -> list[Payload]:
    try:
        return list(planning.made(run, planning.made_from(run, text)))
    except BadPlan as error:
        fault = f"{error.message}; {error.hint}" if error.hint else error.message
        tried = replace(run, faults=[*run.faults, fault])
        if run.attempt < PLANNER_TRIES:
            return _call(tried) if live else []
        return [planning.unfit(tried, error)]


def _call(run: CoordinatedRun) -> list[Payload]:
    """Ask the planner, once more if it was asked before."""
    try:
        prompt = planning.prompt_for(run)
    except BadPlan as error:
        return [_failed(run, "no_plan", [error.message], [error.hint])]
    return [
        PlannerCallRequested(
            permit=run.planner_permit, run_id=run.run_id, revision=run.revision, attempt=run.attempt + 1,
            action=run.asked.action, model=run.asked.config.llm.model, prompt=prompt,
            seconds=min(PLANNER_SECONDS, run.asked.config.policies.max_total_duration_sec),
        )
    ]


def _no_answer(run: CoordinatedRun, end: PlannerFailed | EffectEnd, *, live: bool) -> list[Payload]:
    """``live``: the next call may be made at once; else the next start makes it."""
    text, mend, again = _reading(end)
    if again and run.attempt < PLANNER_TRIES:
        return _call(run) if live else []
    code = "not_permitted" if isinstance(end, EffectRefused) else "no_plan"
    return [_failed(run, code, [text], [mend] if mend else [])]


_FILE = "give a plan with --plan FILE"


def _reading(end: PlannerFailed | EffectEnd) -> tuple[str, str, bool]:
    """The text of an end, its remedy, and whether asking again may help."""
    match end:
        case PlannerFailed(text=text, mend=mend, again=again):
            return text, mend, again
        case EffectTimedOut(limit_s=limit_s):
            return f"the planner did not answer in {limit_s:g} s", _FILE, True
        case EffectInterrupted(reason=reason):
            return f"the planner was interrupted ({reason})", _FILE, True
        case EffectFailed(error=error, place=place):
            return f"the planner could not be asked ({error} in {place})", _FILE, True
        case EffectRefused(reasons=reasons, mend=mend):
            return "; ".join(reasons), "; ".join(mend), False
        case EffectCancelled(reason=reason):
            return f"asking the planner was stopped ({reason})", "pmagent status shows the kernel's mode", False


def _stopped(run: CoordinatedRun) -> Iterator[Payload]:
    if run.board is not None:
        yield from fold.stop(run, run.why)
        return
    if run.calling:
        yield EffectCancelRequested(request=run.request)
    yield _failed(run, "stopped", [run.why], [])
