"""Decisions that cost much are computed once for equal states and events: what the replay at the end of a run comes to
again is what was decided live. A state that differs, in anything, is decided on anew.

Decisions must follow from state and event alone. The second run of a seed checks that; it remembers
nothing of the first, and in each seed that ``remembers_nothing`` names, whose replay computes everything afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pmagent.actors.audit.ends import AUDITOR
from pmagent.actors.core.actor import AnyActor
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

COSTLY: Final = (AUDITOR,)
"""Actors whose decisions are remembered: an invocation of the audit's graph costs as much as a hundred reactions."""
AFRESH: Final = 8
"""Each seed that is divisible by this remembers nothing."""

Decision = Payload | Correlated
Decided = dict[tuple[str, int], tuple[Any, Event, Sequence[Decision]]]
"""Actor and position -> the state and the event that were decided on last there, and the decisions."""


def remembers_nothing(seed: int) -> bool:
    """Whether everything in this seed is decided as often as somebody asks."""
    return seed % AFRESH == 0


class Remembering:
    """``actor``, which does not decide twice on an equal event in an equal state."""

    def __init__(self, actor: AnyActor, decided: Decided) -> None:
        self._actor = actor
        self._decided = decided
        self.name = actor.name
        self.hears = actor.hears
        self.initial = actor.initial
        self.evolve = actor.evolve

    def decide(self, state: Any, event: Event) -> Iterable[Decision]:
        """As the actor does, or did."""
        where = self.name, event.position
        known = self._decided.get(where)
        if known is not None and known[0] == state and known[1] == event:
            return known[2]
        decisions = list(self._actor.decide(state, event))
        self._decided[where] = state, event, decisions
        return decisions
