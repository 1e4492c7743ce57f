"""An effect in the simulation, while it is performed."""

from __future__ import annotations

from collections.abc import Callable

from pmagent.events.event import Event


class Running:
    """An effect that is being performed, in the machine's life number ``boot``."""

    def __init__(self, event: Event, boot: int) -> None:
        self.event = event
        self.boot = boot
        self.stopped = False
        self.ended = False
        self.on_stop: Callable[[], None] = lambda: None
        """Called when the performer is told to end."""
