"""A reaction as it is read back from the log, and its watcher."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.subscribers import Subscriber
from pmagent.events.event import Event


class RecordedReaction(msgspec.Struct):
    """The reaction to ``event`` as far as it has been read back from the log.

    ``states``: the state of each of the ``subscribers`` right after the event. ``failures``: the exceptions of their
    folding, by their indexes. ``slot``: index of the actor whose decision (or halt) was read last; ``recorded``: how
    many of that actor's, and of the engine's about it, were read; ``engine_decisions``: how many of the engine's were
    read in all.
    """

    event: Event
    subscribers: Sequence[Subscriber]
    states: list[Any]
    failures: dict[int, Exception] | None = None
    slot: int = -1
    recorded: int = 0
    engine_decisions: int = 0

    @property
    def taken(self) -> Iterator[tuple[AnyActor, Any, Exception | None]]:
        """Each subscriber, its state right after the event, and the exception of its folding."""
        failures = self.failures or {}
        for index, (subscriber, state) in enumerate(zip(self.subscribers, self.states, strict=True)):
            yield subscriber.actor, state, failures.get(index)


class Witness(Protocol):
    """Watches a history being folded (replay), to compare the decisions of today's code with those recorded."""

    def delivered(self, reading: RecordedReaction) -> None:
        """An event has been handed to its subscribers; none of the recorded decisions on it has been folded yet."""

    def recorded(self, event: Event) -> None:
        """``event``, a recorded decision on what is being reacted to, is about to be folded."""

    def ended(self, reading: RecordedReaction) -> None:
        """All recorded decisions on the event have been folded."""
