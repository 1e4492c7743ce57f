"""Actors of the PLA that halt in a simulated world: each fails on one fact, as a defect that just this fact shows would
have it, in every process and in every replay. Operators let them decide again."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.integrity import ENGINE
from pmagent.actors.registry import all_actors
from pmagent.contracts.effect import ActorHalted, ActorResumed
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import World

FRAIL: Final = ("brain", "warden", "hid")
"""The actors whose code may fail, in the order in which they take an event."""

_HEARS: Final = {actor.name: actor.hears for actor in all_actors() if actor.name in FRAIL}

Fatal = dict[str, frozenset[str]]
"""The id of a fact -> the actors that fail on it."""


class Frail:
    """``actor``, which fails on the facts that are ``fatal`` to it."""

    def __init__(self, actor: AnyActor, fatal: Mapping[str, Container[str]]) -> None:
        self._actor = actor
        self._fatal = fatal
        self.name = actor.name
        self.hears = actor.hears
        self.initial = actor.initial
        self.evolve = actor.evolve

    def decide(self, state: Any, event: Event) -> Iterable[Payload | Correlated]:
        """As the actor does, or fail."""
        if event.kind == "fact" and self.name in self._fatal.get(event.id, ()):
            raise LookupError("a fact without an answer")
        return self._actor.decide(state, event)


class Halting:
    """Decides which facts are ``fatal``, each when it is sent first. ``demand`` sends a request until it is known to be
    in the log; ``history`` is what the log shows."""

    def __init__(
        self, world: World, faults: Faults, fatal: Fatal, demand: Callable[[msgspec.Struct], None],
        history: Callable[[], Sequence[Event]],
    ) -> None:  # fmt: skip
        self._world = world
        self._random = world.chance.stream("pla: halting")
        self._faults = faults
        self._fatal = fatal
        self._demand = demand
        self._history = history
        self._seen: set[str] = set()
        self._doomed: list[frozenset[str]] = []
        """Sets of actors that fail together on the next event that all of them hear."""

    def tells(self, id: str, payload: msgspec.Struct) -> None:
        """A fact is about to be told; the same may be told again."""
        if id in self._seen:
            return
        self._seen.add(id)
        if isinstance(payload, ActorResumed):
            return  # who is to decide again does
        subscribers = [name for name in FRAIL if type(payload) in _HEARS[name]]
        failing = {name for name in subscribers if self._faults.strike(f"actor: {name} halts")}
        failing.update(*(names for names in self._doomed if names.issubset(subscribers)))
        self._doomed = [names for names in self._doomed if not names.issubset(subscribers)]
        if failing:
            self._fatal[id] = frozenset(failing)
            self._resume_later()

    def typing(self) -> None:
        """A report leaves the keyboard device."""
        strike = self._faults.strike
        for fault, names in (
            ("actor: warden halts while it types", ("warden",)),
            ("actor: hid halts while it types", ("hid",)),
            ("actor: warden and hid halt while it types", ("warden", "hid")),
        ):
            if strike(fault):
                self._doomed.append(frozenset(names))

    def calm(self) -> None:
        """Nobody fails any more."""
        self._faults.calm()
        self._doomed.clear()

    def _resume_later(self) -> None:
        if not self._faults.strike("actor: nobody resumes it"):
            seconds = between(self._random, 0.0, 20.0)
            self._world.later(seconds, "resume", self._resume)

    def _resume(self) -> None:
        for name in halted_in(self._history()):
            if name in FRAIL:
                self._demand(ActorResumed(name=name))


def halted_in(history: Sequence[Event]) -> list[str]:
    """The halted actors."""
    halted: dict[str, None] = {}
    for event in history:
        if isinstance(event.data, ActorHalted) and event.actor == ENGINE:
            halted[event.data.name] = None
        elif isinstance(event.data, ActorResumed) and event.kind == "fact":
            halted.pop(event.data.name, None)
    return list(halted)
