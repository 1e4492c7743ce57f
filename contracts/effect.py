"""How effects and actors end when they do not end with an outcome of their own (docs/design.md §3.3, §4.2)."""

from __future__ import annotations

from typing import Final

from pmagent.contracts.payload import Payload, Unknown, effect_of, event_type, type_of


@event_type("effect.refused")
class EffectRefused(Payload, frozen=True, kw_only=True):
    """The gate did not let the request at position ``request`` start; ``reasons`` say why, ``mend`` how to mend it."""

    request: int
    reasons: list[str]
    mend: list[str] = []


@event_type("effect.failed")
class EffectFailed(Payload, frozen=True, kw_only=True):
    """The performer raised. ``error`` is the exception's type, and of an error of the system its name (``OSError
    ENOSPC``); ``place`` module and function; its text is not kept."""

    request: int
    error: str
    place: str


@event_type("effect.timed_out")
class EffectTimedOut(Payload, frozen=True, kw_only=True):
    """The performer was stopped after ``limit_s`` seconds; what it did outside is unknown."""

    request: int
    limit_s: float


@event_type("effect.interrupted")
class EffectInterrupted(Payload, frozen=True, kw_only=True):
    """The outcome of the request is unknown. ``reason``: crash, stop (the process ended before the effect did), lease
    (the lease of the process did), worker lost (nobody hears of the one that made it), worker
    stopped (it was told to end), or ``unrecorded`` and the name
    of the system's error: it ended, but its outcome could not be kept (a full disk)."""

    request: int
    reason: str

    @property
    def with_process(self) -> bool:
        """Whether it was the end of the process that cut it off."""
        return self.reason in ("crash", "stop")


@event_type("effect.cancelled")
class EffectCancelled(Payload, frozen=True, kw_only=True):
    """The running performer was ended because of ``reason`` (permit_revoked, cancel_requested, paused: it had not
    begun, and must not wait; lease: the same, without a live lease; halted: the actor that asked for it was, and it
    must not go on alone; or adopted: the log came from elsewhere, and nothing of it goes on here)."""

    request: int
    reason: str


EffectEnd = EffectFailed | EffectTimedOut | EffectInterrupted | EffectRefused | EffectCancelled
"""How an effect ends when it does not end with an outcome of its own."""

EFFECT_ENDS: Final[frozenset[type[EffectEnd]]] = frozenset(
    (EffectFailed, EffectTimedOut, EffectInterrupted, EffectRefused, EffectCancelled)
)

ENDED: Final[dict[type[EffectEnd], str]] = {
    EffectFailed: "failed",
    EffectTimedOut: "took too long",
    EffectInterrupted: "was interrupted",
    EffectRefused: "was refused",
    EffectCancelled: "was cancelled",
}
"""Each end in words: "the call was interrupted"."""

_RECORDED_ENDS: Final = EFFECT_ENDS - {EffectRefused}
"""Those that are facts; a refusal is the gate's decision."""


def may_end(request: object, outcome: object) -> bool:
    """Whether a fact with the payload ``outcome`` may end the effect that ``request`` asks for: an outcome that the
    request declares, or one of the ends that every effect may come to."""
    types = type(request), type(outcome)
    found = _KNOWN_ENDS.get(types)
    if found is None:
        effect = effect_of(request)
        found = effect is not None and (types[1] in _RECORDED_ENDS or type_of(outcome) in effect.outcomes)
        if types[1] is not Unknown:
            _KNOWN_ENDS[types] = found
    return found


_KNOWN_ENDS: Final[dict[tuple[type, type], bool]] = {}
"""Whether it may, by the types of request and outcome: each fact is asked about several times."""


@event_type("effect.cancel_requested")
class EffectCancelRequested(Payload, frozen=True, kw_only=True):
    """An actor takes back its own request at position ``request``; nothing happens if it has ended already."""

    request: int


@event_type("actor.halted")
class ActorHalted(Payload, frozen=True, kw_only=True):
    """``name``'s decide or evolve raised on the event at ``input``; it decides nothing more."""

    name: str
    input: int
    error: str
    place: str


@event_type("actor.resumed")
class ActorResumed(Payload, frozen=True, kw_only=True):
    """An operator lets a halted actor decide again, from the state that its inputs have folded to."""

    name: str


@event_type("request.refused")
class RequestRefused(Payload, frozen=True, kw_only=True):
    """The request at position ``request`` gets no answer, because the actor that would give it is halted."""

    request: int
    name: str
    reason: str
