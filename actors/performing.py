"""An effect while it is performed, on an event loop."""

from __future__ import annotations

import asyncio

import anyio
import msgspec

from actors.outcomes import cut_off
from contracts.payload import Effect
from events.event import Event


class Running:
    """An effect that is being performed."""

    def __init__(self, event: Event, effect: Effect) -> None:
        self.event = event
        self.effect = effect
        self.ending = ""
        self.timer: asyncio.TimerHandle | None = None
        self._scope: anyio.CancelScope | None = None
        self._stopped = False

    def begin(self) -> anyio.CancelScope:
        """The scope in which it is performed; to be called in its own task, outside of which scopes cannot be made."""
        self._scope = anyio.CancelScope()
        if self._stopped:
            self._scope.cancel()
        return self._scope

    def outcome(self) -> msgspec.Struct | None:
        """See ``cut_off``."""
        return cut_off(self.event.position, self.ending, repeatable=self.effect.repeatable)

    def stop(self) -> None:
        """End it, also when it has not begun."""
        self._stopped = True
        if self._scope is not None:
            self._scope.cancel()
