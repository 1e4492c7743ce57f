"""Toy actors whose behaviour is drawn from numbers: cascades, effects, permits, and exceptions at chosen inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.oa.policy import AUTHORITY
from pmagent.contracts.effect import EffectCancelRequested, EffectFailed
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested, OaPermitRevoked
from pmagent.contracts.payload import (
    Correlated,
    Effect,
    OutwardRequest,
    Payload,
    Scope,
    decode,
    effect_of,
    encode,
    event_type,
    type_of,
)
from pmagent.events.event import Draft, Event, Tail, time_after
from pmagent.events.sequencer import Sequencer

START = "2026-11-21T12:00:00.000000Z"
EVER = "2026-11-22T12:00:00.000000Z"


@event_type("toy.poked")
class Poked(Payload, frozen=True, kw_only=True):
    """A fact without meaning."""

    n: int


@event_type("toy.asked", request=True)
class Asked(Payload, frozen=True, kw_only=True):
    """A fact that somebody wants an answer to."""

    n: int


@event_type("toy.echoed")
class Echoed(Payload, frozen=True, kw_only=True):
    """A decision that others may react to."""

    n: int
    depth: int


@event_type("toy.work_requested", effect=Effect(repeatable=True, limit_s=10.0, concurrency=2, outcomes=("toy.done",)))
class WorkRequested(Payload, frozen=True, kw_only=True):
    """An inward effect that may be repeated."""

    n: int


@event_type("toy.send_requested", effect=Effect(repeatable=False, limit_s=10.0, concurrency=2, outcomes=("toy.done",)))
class SendRequested(OutwardRequest, frozen=True, kw_only=True):
    """An outward effect that must never be repeated."""

    n: int
    subject: str = "toy"

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope("feature_work", self.subject)


@event_type("toy.fetch_requested", effect=Effect(repeatable=True, limit_s=10.0, concurrency=2, outcomes=("toy.done",)))
class FetchRequested(OutwardRequest, frozen=True, kw_only=True):
    """An outward effect that may be repeated."""

    n: int

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope("feature_work", "toy")


@event_type("toy.done")
class Done(Payload, frozen=True, kw_only=True):
    """The outcome of a toy effect."""

    n: int


class ToyState(msgspec.Struct, frozen=True):
    """Enough for what a toy decides to depend on all it took before."""

    taken: int = 0
    mixed: int = 0
    permits: dict[int, int] = {}
    asked_for: list[int] = []


class Toy:
    """An actor whose decisions follow from its name, its state and the number in the event.

    ``decide_fails`` and ``evolve_fails`` are the numbers on which its code raises.
    """

    def __init__(
        self, name: str, hears: Iterable[type[msgspec.Struct]] = (Poked, Asked, Echoed, Done, OaPermitGranted), *,
        decide_fails: Iterable[int] = (), evolve_fails: Iterable[int] = (), depth: int = 2,
    ) -> None:
        self.name = name
        self.hears = frozenset(hears)
        self._decide_fails = frozenset(decide_fails)
        self._evolve_fails = frozenset(evolve_fails)
        self._depth = depth

    def initial(self) -> ToyState:
        """Nothing taken."""
        return ToyState()

    def evolve(self, state: ToyState, event: Event) -> ToyState:
        """Mix the event in."""
        data = event.data
        number = getattr(data, "n", 0)
        if event.actor != self.name and number in self._evolve_fails:
            raise ValueError(f"cannot take {number}")
        taken = ToyState(
            state.taken + 1, crc32(event.raw, state.mixed ^ event.position), state.permits, state.asked_for
        )
        if isinstance(data, OaPermitGranted) and data.holder == self.name:
            return msgspec.structs.replace(taken, permits={**state.permits, event.position: data.uses})
        if effect_of(data) is not None:
            return msgspec.structs.replace(taken, asked_for=[*state.asked_for, event.position][-4:])
        return taken

    def decide(self, state: ToyState, event: Event) -> Iterable[Payload | Correlated]:
        """Up to three decisions, of any of the kinds there are."""
        data = event.data
        number = getattr(data, "n", 0)
        depth = getattr(data, "depth", 0)
        chance = crc32(f"{self.name}.{number}.{state.mixed}".encode())
        for turn in range(chance % 4):
            kind = chance >> (4 * turn + 2) & 7
            if turn and number in self._decide_fails:
                break
            if kind < 3 and depth < self._depth:
                yield Echoed(n=number + turn, depth=depth + 1)
            elif kind == 3:
                yield WorkRequested(n=number)
            elif kind == 4 and state.permits:
                yield SendRequested(n=number, permit=max(state.permits))
            elif kind == 5:
                yield FetchRequested(n=number, permit=max(state.permits, default=0))
            elif kind == 6 and state.asked_for:
                yield EffectCancelRequested(request=state.asked_for[-1])
        if number in self._decide_fails:
            raise LookupError(f"no idea what to do about {number}")


class GrantorState(msgspec.Struct, frozen=True):
    """Granted permits."""

    granted: list[int] = []


class Grantor:
    """Grants each permit that is asked for, in the OA's name; revokes the oldest on ``toy.poked`` with a
    number divisible by seven."""

    name = AUTHORITY.grantor
    authority = AUTHORITY
    hears: frozenset[type[msgspec.Struct]] = frozenset((OaPermitRequested, Poked))

    def initial(self) -> GrantorState:
        """None granted."""
        return GrantorState()

    def evolve(self, state: GrantorState, event: Event) -> GrantorState:
        """Note what was granted and revoked."""
        if isinstance(event.data, OaPermitGranted):
            return GrantorState([*state.granted, event.position])
        if isinstance(event.data, OaPermitRevoked):
            return GrantorState([at for at in state.granted if at != event.data.permit])
        return state

    def decide(self, state: GrantorState, event: Event) -> Iterable[Payload]:
        """See the class."""
        data = event.data
        if isinstance(data, OaPermitRequested):
            yield OaPermitGranted(
                request=event.position, action=data.action, subject=data.subject, holder=data.holder, uses=data.uses,
                expires_at=time_after(event.time, data.seconds), mode="NORMAL",
            )
        elif isinstance(data, Poked) and data.n % 7 == 0 and state.granted:
            yield OaPermitRevoked(permit=state.granted[0], reason="seven")


class Bench:
    """An engine on a bench: facts in by hand, everything that was appended in ``history``."""

    def __init__(self, actors: Sequence[AnyActor]) -> None:
        self.actors = actors
        self.engine = Engine(actors, Sequencer(Tail()))
        self.history: list[Event] = []
        self.second = 0

    @property
    def now(self) -> str:
        """The time: a second later with each fact."""
        return time_after(START, self.second)

    def fact(self, payload: msgspec.Struct, id: str = "", actor: str = "tests", causation: int = 0) -> Output:
        """Take a fact; what came of it."""
        self.second += 1
        out = self.engine.accept(self._draft(payload, id or f"fact-{self.second}", actor, causation), self.now)
        assert out is not None, "a new fact"
        self.history += out.events
        return out

    def finish(self, request: int, payload: msgspec.Struct) -> Output | None:
        """Take an outcome; None when the effect has ended already."""
        self.second += 1
        out = self.engine.finish(request, self._draft(payload, f"{request}.outcome", "toy", request), self.now)
        self.history += out.events if out else []
        return out

    @staticmethod
    def _draft(payload: msgspec.Struct, id: str, actor: str, causation: int) -> Draft:
        return Draft(type_of(payload), payload, encode(payload), id, actor, f"c-{id}", causation)

    def types(self) -> list[str]:
        """The types in the history, in order."""
        return [event.type for event in self.history]

    def of(self, cls: type[msgspec.Struct]) -> list[Event]:
        """The events that carry this payload type."""
        return [event for event in self.history if type(event.data) is cls]


def reread(event: Event) -> Event:
    """The event as it comes back from the log."""
    return msgspec.structs.replace(event, data=decode(event.type, event.raw))


def refolded(actors: Sequence[AnyActor], history: Iterable[Event]) -> Engine:
    """A fresh engine that has read ``history`` back; not completed."""
    engine = Engine(actors, Sequencer(Tail()))
    for event in history:
        engine.fold(reread(event))
    return engine


def permit_for(holder: str, *, subject: str = "toy", uses: int = 1, seconds: float = 1000.0) -> OaPermitRequested:
    """A request for a permit for toy effects."""
    return OaPermitRequested(action="feature_work", subject=subject, holder=holder, uses=uses, seconds=seconds)


def outcome(number: int, request: int) -> msgspec.Struct:
    """One of the ways in which a toy effect ends."""
    return Done(n=number) if number % 3 else EffectFailed(request=request, error="ValueError", place="toy")


class Scripted(Toy):
    """A toy that decides what it is told: number in the input -> payloads."""

    def __init__(
        self, name: str, script: Mapping[int, Sequence[Payload]], hears: Iterable[type[msgspec.Struct]]
    ) -> None:
        super().__init__(name, hears)
        self.script = script

    def decide(self, state: ToyState, event: Event) -> Iterable[Payload]:
        """See the class."""
        del state
        return self.script.get(getattr(event.data, "n", 0), [])


def worker(*decisions: Payload, n: int = 1, name: str = "worker") -> Scripted:
    """An actor that answers ``Poked(n)`` with ``decisions``."""
    return Scripted(name, {n: list(decisions)}, [Poked])
