"""An actor by itself: its state, one event, and what it makes of it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pmagent.contracts.payload import Correlated
from pmagent.events.event import Event

S = TypeVar("S")


class Alone(Generic[S]):
    """``actor``: it is asked, and nobody else."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def made(self, state: S, event: Event) -> list[Any]:
        """Its decisions on the event that has just been folded."""
        decided = self._actor.decide(self._actor.evolve(state, event), event)
        return [one.payload if isinstance(one, Correlated) else one for one in decided]

    def kinds(self, state: S, event: Event) -> set[type]:
        """The types of that."""
        return {type(one) for one in self.made(state, event)}
