"""An effect in the simulation, while it is performed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from actors.ledger import GATE
from contracts.control import EffectsPaused, EffectsResumed
from events.event import Event


class Running:
    """An effect that is being performed, in the machine's life number ``boot``."""

    def __init__(self, event: Event, boot: int) -> None:
        self.event = event
        self.boot = boot
        self.stopped = ""
        self.ended = False
        self.on_stop: Callable[[], None] = lambda: None
        """Called when the performer is told to end."""


def switched(durable: Sequence[Event], *, before: bool) -> bool:
    """Whether effects are paused as far as is durable, when these events are; ``before``: whether they were."""
    for event in durable:
        if event.actor == GATE and event.kind == "decision" and isinstance(event.data, EffectsPaused | EffectsResumed):
            before = isinstance(event.data, EffectsPaused)
    return before
