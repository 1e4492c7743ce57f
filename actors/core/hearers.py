"""Which actors an event wakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pmagent.actors.core.actor import AnyActor
from pmagent.events.event import Event


class Hearer(NamedTuple):
    """An actor that hears an event. ``name`` and ``evolve`` are the actor's: looked up once, for they are needed at
    every event of a long log."""

    name: str
    evolve: Callable[[Any, Event], Any]
    actor: AnyActor


class Hearers:
    """The hearers among ``actors``, in their order; each type of event, and each actor's decisions of it, are looked up
    once, when the first one comes."""

    def __init__(self, actors: Sequence[AnyActor]) -> None:
        self._actors = actors
        self._slots = _slots(tuple(frozenset(actor.hears) for actor in actors))
        self._of_facts: dict[type, Sequence[Hearer]] = {}
        self._of_decisions: dict[str, dict[type, Sequence[Hearer]]] = {}

    def of(self, event: Event) -> Sequence[Hearer]:
        """The actors that ``event`` wakes. An actor's own decisions do not wake it."""
        if event.kind == "fact":
            known = self._of_facts
        else:
            by_type = self._of_decisions.get(event.actor)
            known = by_type if by_type is not None else self._of_decisions.setdefault(event.actor, {})
        found = known.get(type(event.data))
        return found if found is not None else self._look_up(event, known)

    def _look_up(self, event: Event, known: dict[type, Sequence[Hearer]]) -> Sequence[Hearer]:
        cls, decider = type(event.data), event.actor if event.kind == "decision" else ""
        slots = self._slots.get(cls)
        if slots is None:
            slots = tuple(slot for slot, actor in enumerate(self._actors) if cls in actor.hears)
            self._slots[cls] = slots
        heard = map(self._actors.__getitem__, slots)
        found = known[cls] = tuple(Hearer(one.name, one.evolve, one) for one in heard if one.name != decider)
        return found


@lru_cache(maxsize=16)
def _slots(_: tuple[frozenset[type], ...]) -> dict[type, tuple[int, ...]]:
    """The indexes of a type's hearers, as far as they were looked up: actors that hear the same share them."""
    return {}
