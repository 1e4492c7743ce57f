"""Routing: which actors an event wakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pmagent.actors.core.actor import AnyActor
from pmagent.events.event import Event


class Subscriber(NamedTuple):
    """An actor that an event wakes. ``name`` and ``evolve`` are the actor's: looked up once, for they are needed at
    every event of a long log."""

    name: str
    evolve: Callable[[Any, Event], Any]
    actor: AnyActor


class Subscribers:
    """The subscribers of each event among ``actors``, in their order. Each type of event, and each actor's decisions of
    that type, are looked up once, at the first such event."""

    def __init__(self, actors: Sequence[AnyActor]) -> None:
        self._actors = actors
        self._each = [Subscriber(actor.name, actor.evolve, actor) for actor in actors]
        self._slots = _slots(tuple(frozenset(actor.hears) for actor in actors))
        self._of_facts: dict[type, Sequence[Subscriber]] = {}
        self._of_decisions: dict[str, dict[type, Sequence[Subscriber]]] = {}

    def of(self, event: Event) -> Sequence[Subscriber]:
        """The actors that ``event`` wakes. An actor's own decisions do not wake it."""
        if event.kind == "fact":
            known = self._of_facts
        else:
            by_type = self._of_decisions.get(event.actor)
            known = by_type if by_type is not None else self._of_decisions.setdefault(event.actor, {})
        found = known.get(type(event.data))
        return found if found is not None else self._look_up(event, known)

    def _look_up(self, event: Event, known: dict[type, Sequence[Subscriber]]) -> Sequence[Subscriber]:
        cls, decider = type(event.data), event.actor if event.kind == "decision" else ""
        slots = self._slots.get(cls)
        if slots is None:
            slots = tuple(slot for slot, actor in enumerate(self._actors) if cls in actor.hears)
            self._slots[cls] = slots
        found = known[cls] = tuple(one for slot in slots if (one := self._each[slot]).name != decider)
        return found


@lru_cache(maxsize=16)
def _slots(_: tuple[frozenset[type], ...]) -> dict[type, tuple[int, ...]]:
    """The indexes of each type's subscribers, as far as they were looked up; engines with equal actors share them."""
    return {}
