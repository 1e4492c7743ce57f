"""A reaction as it is read back from the log, and who watches that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.hearers import Hearer
from pmagent.events.event import Event


class RecordedReaction(msgspec.Struct):
    """The reaction to ``event`` as far as it has been read back from the log.

    ``hearers``, and the state of each right after it took the event. ``failures``: what their folding raised, by their
    indexes. ``slot``: index of the actor whose decision (or halt) was read last; ``recorded``: how many of that
    actor's, and of the engine's about it, were read; ``engine_decisions``: how many of the engine's were read in all.
    """

    event: Event
    hearers: Sequence[Hearer]
    states: list[Any]
    failures: dict[int, Exception] | None = None
    slot: int = -1
    recorded: int = 0
    engine_decisions: int = 0

    @property
    def taken(self) -> Iterator[tuple[AnyActor, Any, Exception | None]]:
        """Each hearer, its state right after it took the event, and what its folding raised."""
        failures = self.failures or {}
        for index, (hearer, state) in enumerate(zip(self.hearers, self.states, strict=True)):
            yield hearer.actor, state, failures.get(index)


class Witness(Protocol):
    """Whoever watches a history being folded (replay): what would be decided now, beside what is recorded."""

    def delivered(self, reading: RecordedReaction) -> None:
        """An event has been handed to its hearers; none of the recorded decisions on it has been folded yet."""
        ...

    def recorded(self, event: Event) -> None:
        """``event``, a recorded decision on what is being reacted to, is about to be folded."""
        ...

    def ended(self, reading: RecordedReaction) -> None:
        """All recorded decisions on the event have been folded."""
        ...
