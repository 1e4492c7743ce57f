"""A reaction as it is read back from the log, and its watcher."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.events.event import Event


class RecordedReaction(msgspec.Struct):
    """The reaction to ``event`` as far as it has been read back from the log.

    ``taken``: each subscriber, its state right after the event, and the exception of its folding. ``slot``: index of
    the actor whose decision (or halt) was read last; ``recorded``: how many of that actor's, and of the engine's about
    it, were read; ``engine_decisions``: how many of the engine's were read in all.
    """

    event: Event
    taken: list[tuple[AnyActor, Any, Exception | None]]
    slot: int = -1
    recorded: int = 0
    engine_decisions: int = 0


class Witness(Protocol):
    """Watches a history being folded (replay), to compare the decisions of today's code with those recorded."""

    def delivered(self, reading: RecordedReaction) -> None:
        """An event has been handed to its subscribers; none of the recorded decisions on it has been folded yet."""
        ...

    def recorded(self, event: Event) -> None:
        """``event``, a recorded decision on what is being reacted to, is about to be folded."""
        ...

    def ended(self, reading: RecordedReaction) -> None:
        """All recorded decisions on the event have been folded."""
        ...
