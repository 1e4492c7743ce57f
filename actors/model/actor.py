"""The model gateway as an actor; pure.

A question goes: queued until its run has a place free → permit → call → reply. After a failure that may pass it
pauses and is queued again. Each question ends with exactly one of ``model.replied`` and ``model.failed``. Stopping a
call takes time, so its reply may still come after ``model.failed``: the first end counts, and the reply is only charged
to the run.

A timer that ends otherwise than by firing is taken to have fired, so that no question waits for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from pmagent.actors.model import state as fold
from pmagent.actors.model.limits import Stop, exhausted, objection, pause_seconds, seconds_left, waited_seconds
from pmagent.actors.model.plan import DEADLINE, Plan
from pmagent.actors.model.state import Ask, GatewayState
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ActorResumed,
    EffectCancelled,
    EffectEnd,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.model import (
    ModelAsked,
    ModelCallFailed,
    ModelCallRequested,
    ModelFailed,
    ModelReplied,
    ModelWithdrawn,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

GATEWAY = "model"
"""The actor's name: the holder of its permits."""

replace = msgspec.structs.replace


class Gateway:
    """Permits, attempts and limits of all questions to models."""

    name = GATEWAY
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            ModelAsked, ModelWithdrawn, OaPermitGranted, OaPermitRefused, RequestRefused, ModelReplied, ModelCallFailed,
            *EFFECT_ENDS, TimerFired, ActorResumed,
        )
    )

    def initial(self) -> GatewayState:
        """No question."""
        return GatewayState()

    def evolve(self, state: GatewayState, event: Event) -> GatewayState:
        """Fold an input or a decision of its own."""
        if event.actor == GATEWAY and event.kind == "decision":
            return _own(state, event)
        if state.answered is not None or state.stirred:
            state = replace(state, answered=None, stirred="")
        data = event.data
        if type(data) is OaPermitRefused:
            return state  # of its own questions it is decided on; most are others'
        match data:
            case ModelAsked():
                return fold.asked(state, event, data)
            case OaPermitGranted(request=request):
                ask = _asking(state, request, "permit")
                if ask is None:
                    return state
                granted = replace(ask, doing="queued", request=0, permit=event.position)
                return replace(fold.changed(state, granted), stirred=ask.run)
            case RequestRefused(request=request):
                return fold.ended(state, request)  # the engine has answered, because this actor is halted
            case ModelReplied(request=request, usage=usage):
                ask = _asking(state, request, "call")
                over = fold.call_over(state, request, usage)
                return over if ask is None else replace(fold.ended(over, ask.asked), answered=ask)
            case ModelCallFailed(request=request, code=code):
                return fold.call_over(state, request, fold.unknown_usage(state, request) if code in _MAY_COST else None)
            case TimerFired(request=request):
                return _timer_over(state, request)
        if isinstance(data, EffectEnd):
            begun = not isinstance(data, EffectRefused)
            over = fold.call_over(state, data.request, fold.unknown_usage(state, data.request) if begun else None)
            return _timer_over(over, data.request)
        return state

    def decide(self, state: GatewayState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        plan = Plan(state, event)
        data = event.data
        match data:
            case ModelAsked():
                _take(plan, state.asks[event.position], data, event.time)
            case ModelWithdrawn(ask=position):
                ask = state.asks.get(position)
                if ask is not None and ask.asker == event.actor:
                    plan.fail(ask, Stop("withdrawn", "who asked does not want the reply any more"))
            case OaPermitRefused(reasons=reasons):
                _not_permitted(plan, data.request, "; ".join(reasons))
            case RequestRefused(name=name, reason=reason):
                _not_permitted(plan, data.request, f"{name} is {reason}")
            case ModelReplied() if state.answered is not None:
                plan.clear(state.answered)
            case ActorResumed(name=name) if name == GATEWAY:
                for ask in state.asks.values():  # what happened while it was halted was not decided on
                    plan.fail(ask, Stop("interrupted", "the gateway was halted"))
        if isinstance(data, ModelCallFailed | TimerFired | EffectEnd):
            _after(plan, data, event.time)
        plan.go_on()
        return plan.decisions


_OUTAGES = frozenset(("rate_limited", "overloaded", "network"))
"""Failures of the provider, not of the question: its patience says how long they are waited for."""
_MAY_COST = frozenset(("network", "timed_out", "too_long", "malformed"))
"""Failures after which the provider may have answered, and counted, all the same."""


def _own(state: GatewayState, event: Event) -> GatewayState:
    """Fold a decision of the gateway's."""
    data = event.data
    match data:
        case OaPermitRequested(action=action, subject=subject):
            for ask in state.asks.values():  # the oldest first, as they are begun
                wants = ask.doing == "queued" and not ask.permit and ask.correlation == event.correlation
                if wants and (ask.action, f"model:{ask.model}") == (action, subject):
                    return fold.changed(state, replace(ask, doing="permit", request=event.position))
        case ModelCallRequested(ask=position):
            return fold.called(state, state.asks[position], event.position)
        case TimerRequested(name=name):
            what, _, asked = name.partition(" ")
            ask = state.asks[int(asked)]
            if what == DEADLINE:
                return fold.changed(state, replace(ask, deadline_timer=event.position))
            paused = replace(ask, doing="pause", request=0, pause_timer=event.position)
            return fold.changed(state, replace(paused, waiting=ask.waiting or event.time))
        case ModelFailed(ask=position):
            return fold.ended(state, position)
    return state


def _asking(state: GatewayState, request: int, doing: str) -> Ask | None:
    """The question that waits for the permit, or the call, requested at this position."""
    ask = state.waiting_for(request)
    return ask if ask is not None and ask.doing == doing else None


def _timer_over(state: GatewayState, request: int) -> GatewayState:
    """A pause is over. A question that its deadline ends fails, and is forgotten."""
    for ask in state.asks.values():
        if ask.pause_timer == request:
            return replace(fold.changed(state, replace(ask, doing="queued", pause_timer=0)), stirred=ask.run)
    return state


def _take(plan: Plan, ask: Ask, asked: ModelAsked, now: str) -> None:
    why = objection(plan.state, ask, asked, now)
    if why is None:
        plan.wake(ask, DEADLINE, ask.deadline)
    else:
        plan.fail(ask, why)


def _not_permitted(plan: Plan, request: int, text: str) -> None:
    ask = _asking(plan.state, request, "permit")
    if ask is not None:
        plan.fail(ask, Stop("not_permitted", text))


def _after(plan: Plan, end: ModelCallFailed | TimerFired | EffectEnd, now: str) -> None:
    """A call gave no reply, or a timer is over."""
    for ask in plan.state.asks.values():
        if ask.deadline_timer == end.request:
            plan.fail(ask, Stop("time", f"no reply within the run's {ask.limits.seconds:g} seconds"))
            return
    calling = _asking(plan.state, end.request, "call")
    if calling is not None and not isinstance(end, TimerFired):
        _again_or_never(plan, calling, end, now)


def _again_or_never(plan: Plan, ask: Ask, end: ModelCallFailed | EffectEnd, now: str) -> None:
    why, transient, retry_after_s = _reading(end)
    if transient:
        seconds = pause_seconds(ask.attempts, retry_after_s)
        limit = exhausted(plan.state.runs[ask.run], ask, now)
        patience = (ask.limits.patience_minutes or 0.0) if why.code in _OUTAGES else 0.0
        if patience and waited_seconds(ask, now) + seconds > patience * 60:
            why = Stop(why.code, f"{why.text}, {ask.attempts} times in {patience:g} minutes")
        elif not patience and ask.attempts >= ask.limits.attempts:
            why = Stop(why.code, f"{why.text}, {ask.attempts} times" if ask.attempts > 1 else why.text)
        elif limit is not None:
            why = Stop(why.code, f"{why.text}; no further attempt: {limit.text}")
        elif seconds >= seconds_left(ask, now):
            why = Stop(why.code, f"{why.text}; no further attempt: the run's time is over before it")
        else:
            plan.pause(ask, seconds)
            return
    plan.fail(ask, why)


def _reading(end: ModelCallFailed | EffectEnd) -> tuple[Stop, bool, float | None]:
    """The meaning of an end: the failure if it is the last, whether another attempt may help, when at the earliest."""
    match end:
        case ModelCallFailed(code=code, error=error):
            return Stop(code, f"{SAID[code]} ({error})"), end.transient, end.retry_after_s
        case EffectTimedOut(limit_s=limit_s):
            return Stop("timed_out", f"the call was stopped after {limit_s:g} seconds"), True, None
        case EffectInterrupted(reason=reason):
            return Stop("interrupted", f"the call was interrupted ({reason})"), True, None
        case EffectFailed(error=error, place=place):
            return Stop("failed", f"the call could not be made ({error} in {place})"), True, None
        case EffectRefused(reasons=reasons):
            return Stop("not_permitted", "; ".join(reasons)), False, None
        case EffectCancelled(reason=reason):
            return Stop("cancelled", f"the call was stopped ({reason})"), False, None


SAID: Final[Mapping[str, str]] = {
    "unavailable": "there is no such model here",
    "no_key": "the variable of the provider's key is not set",
    "rejected": "the provider rejected the call",
    "rate_limited": "the provider limits the rate of calls",
    "overloaded": "the provider failed",
    "network": "the provider could not be reached",
    "timed_out": "the provider did not answer in time",
    "too_long": "the question or the reply is too long",
    "malformed": "the reply could not be read",
}
"""Each ModelErrorCode in words."""
