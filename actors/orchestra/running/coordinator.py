"""L2 as an actor: makes plans, or gets them made, and gives their tasks to workers in order; pure
(docs/design.md §14.1).

A plan goes: asked for by L1 → given with the request, or asked of the planner under a permit, up to three times with
what was wrong told → held against the configuration → ``plan.made``. A begun run goes on with each worker's result: its
dependents are freed or given up, and those that are ready start in the plan's order while places are free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pmagent.actors.orchestra.planning import prompts as planning
from pmagent.actors.orchestra.planning.graph import BadPlan
from pmagent.actors.orchestra.running import run_state as fold
from pmagent.actors.orchestra.running.run_state import Course
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

replace = msgspec.structs.replace


class CoordinatorState(msgspec.Struct, frozen=True):
    """Open runs by id; ``live``: whether what runs now takes runs up."""

    courses: dict[str, Course] = {}
    live: bool = True


class Coordinator:
    """Plans and schedules."""

    name = COORDINATOR
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            RunRequested, RunRefused, RunEnded, PlanRequested, OaPermitGranted, OaPermitRefused, RequestRefused,
            PlannerReplied, PlannerFailed, *EFFECT_ENDS, RunBegun, TaskFinished, RunStopping, DaemonStarted,
        )
    )  # fmt: skip

    def initial(self) -> CoordinatorState:
        """No run."""
        return CoordinatorState()

    def evolve(self, state: CoordinatorState, event: Event) -> CoordinatorState:
        """Fold an input or a decision of its own."""
        data = event.data
        if not state.courses and not isinstance(data, DaemonStarted | RunRequested):
            return state  # the ends of what others have asked for
        match data:
            case DaemonStarted(surface=surface):
                return replace(state, live=surface in LIVE)
            case RunRequested(run_id=run_id):
                if run_id in state.courses:
                    return state  # L1 refuses it
                return _with(state, Course(run_id, event.position, data))
            case RunRefused(run_id=run_id, request=request) | RunEnded(run_id=run_id, request=request):
                return _without(state, run_id, request)
            case RequestRefused(request=request) if _asked_at(state, event, request):
                return _without(state, event.correlation, request)  # L1 is halted
        course = _concerned(state, event)
        return state if course is None else _with(state, _evolved(course, event))

    def decide(self, state: CoordinatorState, event: Event) -> Iterable[Payload | Correlated]:
        """What an input leads to."""
        data = event.data
        if isinstance(data, DaemonStarted):
            return [
                Correlated(decided, course.run_id)
                for course in state.courses.values()
                if course.doing == "waiting" and state.live
                for decided in _call(course)
            ]
        course = _concerned(state, event)
        return [] if course is None else _decided(state, course, event)


def _with(state: CoordinatorState, course: Course) -> CoordinatorState:
    return replace(state, courses={**state.courses, course.run_id: course})


def _asked_at(state: CoordinatorState, event: Event, request: int) -> bool:
    """Whether ``request`` is the one for the open run that the event belongs to."""
    course = state.courses.get(event.correlation)
    return course is not None and course.requested == request


def _without(state: CoordinatorState, run_id: str, request: int) -> CoordinatorState:
    """Without the run, if it was requested so; its id may be another's by now."""
    known = state.courses.get(run_id)
    if known is None or known.requested != request:
        return state
    return replace(state, courses={name: course for name, course in state.courses.items() if name != run_id})


def _concerned(state: CoordinatorState, event: Event) -> Course | None:
    """The open run that an event is about. Everything of a run has its id as correlation; what ends an effect of
    another actor is none of ours."""
    course = state.courses.get(getattr(event.data, "run_id", event.correlation))
    if course is None:
        return None
    if isinstance(event.data, OaPermitGranted) and event.position == course.planner_permit:
        return course  # folded already: it is no longer waited for
    request = getattr(event.data, "request", None)
    if isinstance(event.data, _ANSWERS) and request != course.request:
        return None
    return course


_ANSWERS = (OaPermitGranted, OaPermitRefused, RequestRefused, PlannerReplied, PlannerFailed, EffectEnd)


def _evolved(course: Course, event: Event) -> Course:
    data = event.data
    match data:
        case RunBegun(permit=permit):
            return replace(course, doing="running", permit=permit)
        case TasksChanged(changes=changes):
            return fold.changed(course, changes)
        case TaskAssigned(assignment=assignment):
            return fold.occupied(course, assignment.task_id)
        case TaskFinished():
            return fold.task_ended(course, event.position, data)
        case RunStopping(reasons=reasons):
            return replace(course, doing="stopping", why="; ".join(reasons))
        case PlanFinished():
            return replace(course, doing="over")
    return _planning(course, event)


def _planning(course: Course, event: Event) -> Course:
    """Fold what belongs to the making of a plan."""
    data = event.data
    match data:
        case PlanRequested(revision=revision) if revision:
            return fold.again(course, revision)
        case OaPermitRequested():
            return replace(course, doing="permit", request=event.position)
        case OaPermitGranted():
            return replace(course, doing="waiting", request=0, planner_permit=event.position)
        case PlannerCallRequested(attempt=attempt):
            return replace(course, doing="call", request=event.position, attempt=attempt)
        case PlanFailed():
            return replace(course, doing="over")
        case TasksPlanned(tasks=tasks):
            return replace(course, tasks=[*course.tasks, *tasks])
        case PlanMade():
            return fold.planned(course)
    if isinstance(data, PlannerReplied | PlannerFailed | EffectEnd) and course.doing == "call":
        return replace(course, doing="waiting")  # for what is decided on it, or for a start that takes runs up
    return course


def _decided(state: CoordinatorState, course: Course, event: Event) -> Iterable[Payload]:
    data = event.data
    match data:
        case PlanRequested(revision=revision):
            if course.asked.plan is not None and not revision:
                return _from_request(course)
            return [_permit(course)]
        case OaPermitGranted():
            return _call(course) if state.live else []
        case OaPermitRefused(reasons=reasons, mend=mend) if course.doing == "permit":
            return [_failed(course, "not_permitted", ["no permit to ask the planner", *reasons], mend)]
        case RequestRefused(name=name) if course.doing == "permit":
            return [_failed(course, "not_permitted", [f"{name} is halted"], [_HALTED])]
        case PlannerReplied(text=text) if course.doing == "waiting":
            return _from_answer(course, text, live=state.live)
        case RunBegun():
            return list(fold.begin(course))
        case TaskFinished():
            return list(fold.go_on(course, data))
        case RunStopping():
            return list(_stopped(course))
    if isinstance(data, PlannerFailed | EffectEnd) and course.doing == "waiting":
        next_start = isinstance(data, EffectInterrupted) and data.with_process
        return _no_answer(course, data, live=state.live and not next_start)
    return []


_HALTED = "pmagent log tail --type actor.halted shows where; start a version that does not fail"


def _failed(course: Course, code: str, reasons: list[str], mend: list[str]) -> PlanFailed:
    return msgspec.convert(
        {"run_id": course.run_id, "revision": course.revision, "code": code, "reasons": reasons, "mend": mend},
        PlanFailed,
    )


def _permit(course: Course) -> OaPermitRequested:
    """For as long as the run may last: a call that was cut off is made again, whenever the next start is."""
    return OaPermitRequested(
        action=course.asked.action, subject=f"planner:{course.run_id}", holder=COORDINATOR, uses=PLANNER_TRIES,
        seconds=course.asked.config.policies.max_total_duration_sec,
    )


def _from_request(course: Course) -> list[Payload]:
    try:
        return list(planning.made(course, planning.given_plan(course)))
    except BadPlan as error:
        return [planning.unfit(course, error)]


def _from_answer(course: Course, text: str, *, live: bool) -> list[Payload]:
    try:
        return list(planning.made(course, planning.made_from(course, text)))
    except BadPlan as error:
        fault = f"{error.message}; {error.hint}" if error.hint else error.message
        tried = replace(course, faults=[*course.faults, fault])
        if course.attempt < PLANNER_TRIES:
            return _call(tried) if live else []
        return [planning.unfit(tried, error)]


def _call(course: Course) -> list[Payload]:
    """Ask the planner, once more if it was asked before."""
    try:
        prompt = planning.prompt_for(course)
    except BadPlan as error:
        return [_failed(course, "no_plan", [error.message], [error.hint])]
    return [
        PlannerCallRequested(
            permit=course.planner_permit,
            run_id=course.run_id,
            revision=course.revision,
            attempt=course.attempt + 1,
            action=course.asked.action,
            model=course.asked.config.llm.model,
            prompt=prompt,
            seconds=min(PLANNER_SECONDS, course.asked.config.policies.max_total_duration_sec),
        )
    ]


def _no_answer(course: Course, end: PlannerFailed | EffectEnd, *, live: bool) -> list[Payload]:
    """``live``: the next call may be made at once; else the next start makes it."""
    text, mend, again = _reading(end)
    if again and course.attempt < PLANNER_TRIES:
        return _call(course) if live else []
    code = "not_permitted" if isinstance(end, EffectRefused) else "no_plan"
    return [_failed(course, code, [text], [mend] if mend else [])]


_FILE = "give a plan with --plan FILE"


def _reading(end: PlannerFailed | EffectEnd) -> tuple[str, str, bool]:
    """What an end says, what mends it, and whether asking again may help."""
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


def _stopped(course: Course) -> Iterator[Payload]:
    if course.board is not None:
        yield from fold.stop(course, course.why)
        return
    if course.calling:
        yield EffectCancelRequested(request=course.request)
    yield _failed(course, "stopped", [course.why], [])
