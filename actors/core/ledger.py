"""The ledger of effects: which requests have no terminal event yet (docs/design.md §4).

An effect is opened by its request and closed by exactly one terminal event: the gate's refusal (the engine's, while the
gate is halted), or a fact whose cause is the request and whose type the request declares as an outcome, or that is one
of the ends of any effect. A recorded fact of a type that this code does not know ends it, too: a later release declared
it. A cancellation is asked for by the requesting actor, or follows from the permit's revocation, or from a mode that
forbids what runs: an effect may outlast its permit, which nobody then revokes any more. An effect that must be attended
(``Effect.attended``) ends with the halt of the actor that asked for it. An effect that a fact requests
(``Effect.answers``: a run's time limit) ends with the answer to that fact, too.

While effects are paused an outward request opens an effect as ever, which is held: it has not been started, nor will it
be before they are resumed. The ledger says so; ``pmagent.actors.core.scheduler`` sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final

import msgspec

from pmagent.actors.core.authority import NOBODY, Authority
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import ActorHalted, EffectCancelRequested, EffectRefused, may_end
from pmagent.contracts.payload import OutwardRequest, Unknown, effect_of, may_answer, requests_effect
from pmagent.events.event import Event

GATE: Final = "gate"
"""The actor that refuses effects."""

OPEN_EFFECTS_MAX: Final = 100_000
"""So many effects may be open at once."""


class Cancel(msgspec.Struct, frozen=True):
    """The performer of ``request`` is to be ended. ``reason``: cancel_requested, permit_revoked, halted or answered."""

    request: int
    reason: str


class Unfinished(msgspec.Struct, frozen=True):
    """The open effects at a start. ``begun``: a process before this one may have begun them. ``held``: they only waited
    for a pause to end; ``paused``: as they still do."""

    begun: Sequence[Event] = ()
    held: Sequence[Event] = ()
    paused: bool = False


NO_CANCELS: Final[Sequence[Cancel]] = ()

NO_STARTS: Final[Sequence[Event]] = ()

_ENDING: Final = frozenset((EffectRefused, EffectCancelRequested, ActorHalted))
"""The decisions, besides requests and those of the authority, that concern open effects."""

_PAUSING: Final = frozenset((EffectsPaused, EffectsResumed))


class EffectLedger:
    """Open effects by the position of their request. ``refusers``: whose refusals close an effect; ``authority``: whose
    permits and rulings they go by."""

    def __init__(self, refusers: Container[str] = (GATE,), authority: Authority = NOBODY) -> None:
        self._refusers = refusers
        self._authority = authority
        self._ending = _ENDING | {*authority.revocations, authority.ruling}
        self.open: dict[int, Event] = {}
        self.cancelled: dict[int, str] = {}
        """Open effects that are to be cancelled, with the reason. A crash may come between the word and the deed: what
        was cancelled before it must not be performed again after it."""
        self.paused = False
        self.held: dict[int, Event] = {}
        """Open outward effects that wait for the pause to end; none of them has been started."""

    @property
    def full(self) -> bool:
        """Whether no more effects may be requested until some end."""
        return len(self.open) >= OPEN_EFFECTS_MAX

    def unfinished(self) -> Unfinished:
        """The effects that the log leaves open, for recovery. Ask before the engine completes a reaction: its decisions
        then, a resumption perhaps, are not durable yet."""
        held = {at: event for at, event in self.held.items() if at not in self.cancelled}
        return Unfinished([event for at, event in self.open.items() if at not in held], [*held.values()], self.paused)

    def is_open(self, request: int) -> bool:
        """Whether the request has no terminal event yet."""
        return request in self.open

    def concerns(self, decision: type) -> bool:
        """Whether ``book`` may do anything with decisions of this type."""
        return decision in self._ending or decision in _PAUSING or requests_effect(decision) or may_answer(decision)

    def book(self, event: Event) -> tuple[Sequence[Event], Sequence[Cancel]]:
        """Take an event of the log. Returns the effects that it requests, and what it cancels."""
        data = event.data
        if event.kind == "fact":
            request = self.open.get(event.causation) if event.causation else None
            if request is not None and (may_end(request.data, data) or type(data) is Unknown):
                self._close(event.causation)
            effect = effect_of(data)
            if effect is not None and effect.answers:
                self.open[event.position] = event
                return (event,), NO_CANCELS
        elif effect_of(data) is not None:
            self.open[event.position] = event
            if self.paused and isinstance(data, OutwardRequest):
                self.held[event.position] = event
            return (event,), NO_CANCELS
        elif type(data) in self._ending or may_answer(type(data)):
            return NO_STARTS, [*self._end(event), *self._answered(event)]
        elif event.actor == GATE and type(data) in _PAUSING:
            self.paused = type(data) is EffectsPaused
            if not self.paused:
                self.held = {}
        return NO_STARTS, NO_CANCELS

    def _end(self, event: Event) -> Sequence[Cancel]:
        data = event.data
        if isinstance(data, EffectRefused):
            if event.actor in self._refusers:
                self._close(data.request)
        elif isinstance(data, EffectCancelRequested):
            request = self.open.get(data.request)
            if request is not None and request.actor == event.actor:
                return [self._cancel(data.request, "cancel_requested")]
        elif isinstance(data, self._authority.revocations):
            permit = data.permit
            return self._revoke(lambda request: request.permit == permit)
        elif isinstance(data, self._authority.ruling):
            return self._revoke(lambda request: self._authority.terminates(data, request.scope().action))
        elif isinstance(data, ActorHalted):
            if data.name == self._authority.watcher:
                return self._revoke(lambda _: True)
            return [
                self._cancel(position, "halted")
                for position, event in self.open.items()
                if event.actor == data.name and (effect := effect_of(event.data)) is not None and effect.attended
            ]
        return NO_CANCELS

    def _answered(self, event: Event) -> Sequence[Cancel]:
        """An effect that goes on until its request is answered ends with the answer."""
        at = getattr(event.data, "request", 0)
        request = self.open.get(at)
        effect = effect_of(request.data) if request is not None else None
        if effect is None or event.type not in effect.answers:
            return NO_CANCELS
        self._close(at)
        return [Cancel(at, "answered")]

    def _revoke(self, concerned: Callable[[OutwardRequest], bool]) -> Sequence[Cancel]:
        """Cancel the open outward effects that are ``concerned``."""
        return [
            self._cancel(position, "permit_revoked")
            for position, event in self.open.items()
            if isinstance(event.data, OutwardRequest) and concerned(event.data)
        ]

    def _close(self, request: int) -> None:
        self.open.pop(request, None)
        self.held.pop(request, None)
        self.cancelled.pop(request, None)

    def _cancel(self, request: int, reason: str) -> Cancel:
        return Cancel(request, self.cancelled.setdefault(request, reason))
