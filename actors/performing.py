"""An effect while it is performed, on an event loop."""

from __future__ import annotations

import asyncio

import anyio

from contracts.payload import Effect
from events.event import Event


class Running:
    """An effect that is being performed."""

    __slots__ = ("_scope", "_stopped", "_timer", "effect", "event")

    def __init__(self, event: Event, effect: Effect) -> None:
        self.event = event
        self.effect = effect
        self._timer: asyncio.TimerHandle | None = None
        self._scope: anyio.CancelScope | None = None
        self._stopped = False

    def begin(self) -> anyio.CancelScope:
        """The scope in which it is performed; to be called in its own task, outside of which scopes cannot be made."""
        self._scope = anyio.CancelScope()
        if self._stopped:
            self._scope.cancel()
        return self._scope

    def stop(self) -> None:
        """End it, also when it has not begun."""
        self._stopped = True
        if self._scope is not None:
            self._scope.cancel()

    def time(self, timer: asyncio.TimerHandle | None) -> None:
        """Replace its timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer
