"""The gate: no outward effect without a permit, default deny (docs/design.md §5).

Pure like an actor, and run by the engine before all actors: it judges a request at the request's position, and its
refusal is a decision, so replay checks the gate as well. A permit counts when it exists, is held by the requesting
actor, is for the same action and subject, has a use left, has not expired at the event's time, was not revoked, and
the actor that granted it is not halted. While the gate itself is halted, the engine refuses everything outward.

It is the stop switch as well: while an operator has paused effects, what has a good permit is held by the engine until
they are resumed, and what must not wait is refused. A permit that has expired meanwhile lets nothing start any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pmagent.actors.core.authority import NOBODY, Authority
from pmagent.actors.core.ledger import GATE
from pmagent.contracts.control import EffectsPaused, EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import ActorHalted, EffectCancelled, EffectInterrupted, EffectRefused
from pmagent.contracts.payload import Correlated, OutwardRequest, Payload, type_count, types
from pmagent.events.event import Event

_PAUSES: Final = (PauseRequested, ResumeRequested)


class Permit(msgspec.Struct, frozen=True):
    """A live permit: what it is for, who holds and who granted it, how often and until when."""

    action: str
    subject: str
    holder: str
    grantor: str
    uses_left: int
    expires_at: str


class Pause(msgspec.Struct, frozen=True):
    """Effects are paused: ``since`` is the position of the request for it, ``time`` its time."""

    since: int
    time: str
    operator_id: str
    reason: str


class Held(msgspec.Struct, frozen=True):
    """A request that waits until effects are resumed: when its permit expires, and what it belongs to."""

    expires_at: str
    correlation: str


class GateState(msgspec.Struct, frozen=True):
    """Live permits by the position that granted them; ``refusal`` is the verdict on the request taken last. ``pause``:
    who has paused effects, None while they start; ``held``: the requests that wait until they are resumed."""

    permits: dict[int, Permit] = {}
    refusal: list[str] = []
    pause: Pause | None = None
    held: dict[int, Held] = {}


class Gate:
    """The permit check as an actor named ``gate``; ``authority``: whose permits count. Another's word for one is
    none."""

    name = GATE

    def __init__(self, authority: Authority = NOBODY) -> None:
        self._authority = authority

    @property
    def hears(self) -> frozenset[type[msgspec.Struct]]:
        """Events that change permits, and every outward request type registered by now: one that was registered
        after the gate was made is judged like any other."""
        return _hears(self._authority, type_count())

    def initial(self) -> GateState:
        """No permit: everything outward is refused."""
        return GateState()

    def evolve(self, state: GateState, event: Event) -> GateState:
        """Note grants, revocations, uses and pauses; judge a request."""
        data = event.data
        if state.refusal:
            state = replace(state, refusal=[])
        if event.kind == "fact":
            return _fact(state, event)
        if isinstance(data, OutwardRequest):
            return _use(state, event, data)
        if isinstance(data, self._authority.grant) and event.actor == self._authority.grantor:
            permit = Permit(data.action, data.subject, data.holder, event.actor, data.uses, data.expires_at)
            kept = _unexpired(state.permits, event.time)
            kept[event.position] = permit
            return replace(state, permits=kept)
        if isinstance(data, self._authority.revocations):
            return _left(state, lambda at, _: at != data.permit)
        if isinstance(data, ActorHalted):
            return _left(state, lambda _, permit: permit.grantor != data.name)
        if event.actor == GATE:
            return _own(state, event, data)
        return state

    def decide(self, state: GateState, event: Event) -> Iterable[Payload | Correlated]:
        """``effect.refused`` when the request has no good permit; the answers to those who pause and resume."""
        if state.refusal and isinstance(event.data, OutwardRequest):
            scope = event.data.scope()
            mend = f"request a permit for {scope.action} on {scope.subject} and use it before it expires"
            yield refusal(event, state.refusal, mend)
        elif isinstance(event.data, PauseRequested):
            since = state.pause.since if state.pause is not None else event.position
            yield EffectsPaused(
                request=event.position, since=since, operator_id=event.data.operator_id, channel=event.data.channel,
                reason=event.data.reason,
            )  # fmt: skip
        elif isinstance(event.data, ResumeRequested) and event.kind == "fact":  # an operator's word, and no actor's
            yield from _resumed(state, event, event.data)


@lru_cache(maxsize=4)
def _hears(authority: Authority, _: int) -> frozenset[type[Any]]:
    """The types that the gate hears while so many are registered."""
    outward = (cls for cls in types().values() if issubclass(cls, OutwardRequest))
    return frozenset((
        authority.grant, *authority.revocations, ActorHalted, *_PAUSES, EffectCancelled, EffectInterrupted,
        EffectRefused, *outward,
    ))  # fmt: skip


def _resumed(state: GateState, event: Event, asked: ResumeRequested) -> Iterator[Payload | Correlated]:
    """Held requests start; those that no permit covers any more are refused, which their owner is told."""
    late = {request: held for request, held in state.held.items() if event.time >= held.expires_at}
    for request, held in late.items():
        reason = f"its permit expired at {held.expires_at}, while effects were paused"
        refused = EffectRefused(request=request, reasons=[reason], mend=["ask for it again"])
        yield Correlated(refused, held.correlation) if held.correlation else refused
    since = state.pause.since if state.pause is not None else 0
    yield EffectsResumed(
        request=event.position, since=since, held=len(state.held) - len(late), operator_id=asked.operator_id,
        channel=asked.channel,
    )  # fmt: skip


def _fact(state: GateState, event: Event) -> GateState:
    """Only decisions grant, use and take away: a fact is somebody's word. How effects end is one, though."""
    if isinstance(event.data, EffectCancelled | EffectInterrupted) and event.causation in state.held:
        return _without(state, event.causation)
    return state


def _own(state: GateState, event: Event, data: msgspec.Struct) -> GateState:
    if isinstance(data, EffectsPaused):
        if state.pause is not None:
            return state  # who paused first has paused
        return replace(state, pause=Pause(data.since, event.time, data.operator_id, data.reason))
    if isinstance(data, EffectsResumed):
        return replace(state, pause=None, held={})
    if isinstance(data, EffectRefused) and data.request in state.held:
        return _without(state, data.request)
    return state


def _without(state: GateState, request: int) -> GateState:
    return replace(state, held={at: held for at, held in state.held.items() if at != request})


def _left(state: GateState, stays: Callable[[int, Permit], bool]) -> GateState:
    return replace(state, permits={at: permit for at, permit in state.permits.items() if stays(at, permit)})


def refusal(request: Event, reasons: list[str], mend: str) -> EffectRefused:
    """The terminal event of a request that may not start."""
    return EffectRefused(request=request.position, reasons=reasons, mend=[mend])


def _use(state: GateState, event: Event, request: OutwardRequest) -> GateState:
    permit = state.permits.get(request.permit)
    if permit is None:
        reason = f"there is no live permit {request.permit}" if request.permit else "the request names no permit"
        return replace(state, refusal=[reason])
    scope = request.scope()
    reasons: list[str] = []
    if permit.holder != event.actor:
        reasons.append(f"permit {request.permit} is held by {permit.holder}, not by {event.actor}")
    if (permit.action, permit.subject) != (scope.action, scope.subject):
        reasons.append(
            f"permit {request.permit} is for {permit.action} on {permit.subject}, not {scope.action} on {scope.subject}"
        )
    if event.time >= permit.expires_at:
        reasons.append(f"permit {request.permit} expired at {permit.expires_at}")
    if permit.uses_left < 1:
        reasons.append(f"permit {request.permit} is used up")
    if state.pause is not None and not request.waits:
        reasons.append(f"effects are paused, by {state.pause.operator_id}, and this must not wait")
    if reasons:
        return replace(state, refusal=reasons)
    used = replace(permit, uses_left=permit.uses_left - 1)
    held = state.held
    if state.pause is not None:
        held = {**held, event.position: Held(permit.expires_at, event.correlation)}
    return replace(state, permits={**state.permits, request.permit: used}, held=held)


def _unexpired(permits: dict[int, Permit], time: str) -> dict[int, Permit]:
    """A copy with those that may still be used; dropping the others keeps the state bounded."""
    return {at: permit for at, permit in permits.items() if time < permit.expires_at}
