"""The checker as an actor: runs configured checks and guards, few at a time, and answers once; pure (docs/checks.md).

    check.requested -> (oa.permit_requested -> check.run_requested -> check.ran | check.unstarted)* -> check.answered

Each run needs a permit of its own. Running one changes nothing and reaches nobody, so it is a diagnostic, which is
permitted in every mode; what is cut off all the same, because a mode that got worse took its permit back or the process
was killed, is tried again a bounded number of times. A check that did not come to its end has not passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pmagent.actors.checks import state as fold
from pmagent.actors.checks.results import not_run, of_run, of_unstarted
from pmagent.actors.checks.state import CheckerState, Item, Open
from pmagent.contracts.checks import (
    AT_ONCE,
    CheckAnswered,
    CheckRan,
    CheckRequested,
    CheckResult,
    CheckRunRequested,
    CheckUnstarted,
    scope_of,
)
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ActorHalted,
    ActorResumed,
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
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

CHECKER: Final = "checker"
OA: Final = "oa"
"""The actor that grants permits."""

OPEN_MAX: Final = 16
"""So many requests are open at once; a further one is answered at once."""
ATTEMPTS: Final = 3
"""So often a permit is asked for one check."""
PERMIT_SECONDS: Final = 60.0
"""A permit is used as soon as it is granted."""


class Checker:
    """Runs checks; see the module."""

    name = CHECKER
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        CheckRequested, OaPermitGranted, OaPermitRefused, CheckRan, CheckUnstarted, *EFFECT_ENDS, RequestRefused,
        ActorHalted, ActorResumed,
    ))

    def initial(self) -> CheckerState:
        """No request."""
        return CheckerState()

    def evolve(self, state: CheckerState, event: Event) -> CheckerState:
        """Fold an input or a decision of its own."""
        data = event.data
        if not state.open and type(data) is not CheckRequested:
            return state  # the ends of what others have asked for
        match data:
            case CheckRequested():
                return fold.begun(state, event.position, event.correlation, data)
            case OaPermitRequested(subject=subject) if event.actor == CHECKER:
                return fold.permit_asked(state, event.position, event.correlation, subject)
            case CheckRunRequested(request=request, name=name):
                return fold.run_asked(state, event.position, request, name)
            case CheckAnswered(request=request):
                return fold.closed(state, request)
            case RequestRefused(request=request) if request in state.open:  # in its stead, while this actor is halted
                return fold.closed(state, request)
            case ActorHalted(name=name) if name == OA:
                return _no_permits(state)
            case OaPermitRefused(request=position) | RequestRefused(request=position):
                return _over(state, position, event)
        if isinstance(data, CheckRan | CheckUnstarted | EffectEnd):
            return _over(state, data.request, event)
        return state

    def decide(self, state: CheckerState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions that follow from an input."""
        match event.data:
            case CheckRequested():
                if (why := _objection(state, event.data)) is not None:
                    return [_answer(state.open[event.position], [], *why)]
            case OaPermitGranted(request=request):
                waiting = state.waiting(request)
                return [] if waiting is None else [_run(*waiting, event.position)]
            case ActorResumed(name=name) if name == CHECKER:
                return [decision for one in state.open.values() for decision in _given_up(one)]
        return [*_answers(state), *_next(state)]


def _objection(state: CheckerState, asked: CheckRequested) -> tuple[str, str] | None:
    """Why nothing of a request is run, and what would mend that."""
    if len(state.open) > OPEN_MAX:
        return "too many requests for checks are open", "ask again when they have been answered"
    names = [check.name for check in asked.checks]
    if len(set(names)) < len(names):
        return "two checks bear the same name", "give each a name of its own"
    return None


def _no_permits(state: CheckerState) -> CheckerState:
    """The OA is halted: what waits for its word waits in vain."""
    for _, item in state.each():
        if item.doing == "permit":
            state = fold.ended(state, item.at, not_run(item.check.name, "the OA is halted", _HALTED))
    return state


_HALTED: Final = "pmagent log tail --type actor.halted shows where; start again with a version that does not fail"


def _over(state: CheckerState, position: int, event: Event) -> CheckerState:
    """The effect requested at ``position`` has ended: the check is done, or to be tried again."""
    found = state.waiting(position)
    if found is None:
        return state
    one, item = found
    if _may_try_again(event.data) and item.attempts < ATTEMPTS:
        return fold.queued_again(state, position)
    return fold.ended(state, position, _result(one, item, event))


def _may_try_again(end: msgspec.Struct) -> bool:
    """Whether what ended a run says nothing about the check: its permit was taken back, or the process was killed. An
    orderly stop is somebody's wish."""
    match end:
        case EffectRefused() | EffectCancelled():
            return True
        case EffectInterrupted(reason=reason):
            return reason == "crash"
    return False


def _result(one: Open, item: Item, event: Event) -> CheckResult:
    name, at = item.check.name, event.position
    match event.data:
        case CheckRan() as ran:
            return of_run(name, one.seconds, ran, at)
        case CheckUnstarted() as unstarted:
            return of_unstarted(name, unstarted, at)
        case OaPermitRefused(reasons=reasons, mend=mend):
            return not_run(name, f"it is not permitted: {'; '.join(reasons)}", "; ".join(mend), at)
        case RequestRefused(name=refuser, reason=reason):
            return not_run(name, f"{refuser} is {reason}", _HALTED, at)
        case EffectRefused(reasons=reasons, mend=mend):
            return not_run(name, f"it was refused: {'; '.join(reasons)}", "; ".join(mend), at)
        case EffectFailed(error=error, place=place):
            return not_run(name, f"running it failed ({error} in {place})", end=at)
        case EffectTimedOut(limit_s=limit):
            return not_run(name, f"its sandbox had not ended after {limit:g} s", end=at)
        case EffectCancelled(reason=reason) | EffectInterrupted(reason=reason):
            return not_run(name, f"it was cut off ({reason})", end=at)
    return not_run(name, "it ended in a way that is not known", end=at)


def _run(one: Open, item: Item, permit: int) -> Correlated:
    check = item.check
    request = CheckRunRequested(
        permit=permit, request=one.request, kind=one.kind, name=check.name, argv=check.argv, seconds=one.seconds,
        attempt=item.attempts, reads=one.reads,
    )
    return Correlated(request, one.correlation)


def _answers(state: CheckerState) -> Iterator[Correlated]:
    return (_answer(one, one.results) for one in state.open.values() if one.done)


def _next(state: CheckerState) -> Iterator[Correlated]:
    """Permits for what waits in the queue, for as many as there are places, the oldest first."""
    places = AT_ONCE - state.active
    waiting = [(one, item) for one, item in state.each() if item.doing == "queued"]
    for one, item in waiting[: max(0, places)]:
        scope = scope_of(one.kind, item.check.name)
        asked = OaPermitRequested(action=scope.action, subject=scope.subject, holder=CHECKER, seconds=PERMIT_SECONDS)
        yield Correlated(asked, one.correlation)


def _given_up(one: Open) -> Iterator[Correlated]:
    """After a halt, during which nothing was decided: what still runs is taken back, and what is known is answered."""
    for item in one.items:
        if item.doing == "run":
            yield Correlated(EffectCancelRequested(request=item.at), one.correlation)
    lost = [item.result or not_run(item.check.name, "the checker was halted") for item in one.items]
    yield _answer(one, lost)


def _answer(one: Open, results: list[CheckResult], error: str = "", mend: str = "") -> Correlated:
    return Correlated(CheckAnswered(request=one.request, results=results, error=error, mend=mend), one.correlation)
