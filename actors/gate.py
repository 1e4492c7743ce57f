"""The gate: no outward effect without a permit, default deny (DESIGN §3, effects).

Pure like an actor, and run by the engine before all actors: it judges a request at the request's position, and its
refusal is a decision, so replay checks the gate as well. A permit counts when it exists, is held by the requesting
actor, is for the same action and subject, has a use left, has not expired at the event's time, was not revoked, and
the actor that granted it is not halted. While the gate itself is halted, the engine refuses everything outward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from actors.ledger import GATE
from contracts.effect import ActorHalted, EffectRefused
from contracts.oa import OaPermitGranted, OaPermitRevoked
from contracts.payload import OutwardRequest, Payload, types
from events.event import Event

GRANTOR: Final = "oa"
"""Who grants permits; another's word for one is none."""


class Permit(msgspec.Struct, frozen=True):
    """A live permit: what it is for, who holds and who granted it, how often and until when."""

    action: str
    subject: str
    holder: str
    grantor: str
    uses_left: int
    expires_at: str


class GateState(msgspec.Struct, frozen=True):
    """Live permits by the position that granted them; ``refusal`` is the verdict on the request taken last."""

    permits: dict[int, Permit] = {}
    refusal: list[str] = []


class Gate:
    """The permit check as an actor named ``gate``."""

    name = GATE

    @property
    def hears(self) -> frozenset[type[msgspec.Struct]]:
        """What changes permits, and every outward request there is by now: a type that was registered after the gate
        was made is judged like any other."""
        outward = (cls for cls in types().values() if issubclass(cls, OutwardRequest))
        return frozenset((OaPermitGranted, OaPermitRevoked, ActorHalted, *outward))

    def initial(self) -> GateState:
        """No permit: everything outward is refused."""
        return GateState()

    def evolve(self, state: GateState, event: Event) -> GateState:
        """Note grants, revocations and uses; judge a request."""
        data = event.data
        if event.kind == "fact":
            return GateState(state.permits)  # only decisions grant, use and take away: a fact is somebody's word
        if isinstance(data, OutwardRequest):
            return _use(state, event, data)
        if isinstance(data, OaPermitGranted) and event.actor == GRANTOR:
            permit = Permit(data.action, data.subject, data.holder, event.actor, data.uses, data.expires_at)
            return GateState({**_unexpired(state.permits, event.time), event.position: permit})
        if isinstance(data, OaPermitRevoked):
            return GateState({at: permit for at, permit in state.permits.items() if at != data.permit})
        if isinstance(data, ActorHalted):
            return GateState({at: permit for at, permit in state.permits.items() if permit.grantor != data.name})
        return state

    def decide(self, state: GateState, event: Event) -> Iterable[Payload]:
        """``effect.refused`` when the request has no good permit."""
        if state.refusal and isinstance(event.data, OutwardRequest):
            scope = event.data.scope()
            mend = f"request a permit for {scope.action} on {scope.subject} and use it before it expires"
            yield refusal(event, state.refusal, mend)


def refusal(request: Event, reasons: list[str], mend: str) -> EffectRefused:
    """The terminal event of a request that may not start."""
    return EffectRefused(request=request.position, reasons=reasons, mend=[mend])


def _use(state: GateState, event: Event, request: OutwardRequest) -> GateState:
    permit = state.permits.get(request.permit)
    if permit is None:
        reason = f"there is no live permit {request.permit}" if request.permit else "the request names no permit"
        return GateState(state.permits, [reason])
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
    if reasons:
        return GateState(state.permits, reasons)
    used = msgspec.structs.replace(permit, uses_left=permit.uses_left - 1)
    return GateState({**state.permits, request.permit: used})


def _unexpired(permits: dict[int, Permit], time: str) -> dict[int, Permit]:
    """Those that may still be used; dropping the others keeps the state bounded."""
    return {at: permit for at, permit in permits.items() if time < permit.expires_at}
