"""An effect while it is performed, on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import anyio

from pmagent.actors.core.ledger import EffectLedger
from pmagent.contracts.payload import Effect
from pmagent.events.event import Event
from pmagent.events.store import LogStore


@runtime_checkable
class Elsewhere(Protocol):
    """The effects that go on outside of this process (``Scheduler``), by the positions of their requests."""

    def join(self, store: LogStore, effects: EffectLedger) -> None:
        """The log in ``store`` is held, and ``effects`` are those that it has. Raises PmagentError."""

    def __contains__(self, request: object) -> bool:
        """Whether this one does."""

    def leave(self, request: int) -> None:
        """Its performer is told to stop next, and is to leave it to the next process."""


class Running:
    """An effect that is being performed."""

    __slots__ = ("_make_scope", "_scope", "_stopped", "_timer", "effect", "event", "task")

    def __init__(self, event: Event, effect: Effect, make_scope: Callable[[], anyio.CancelScope]) -> None:
        self.event = event
        self.effect = effect
        self._make_scope = make_scope
        self._timer: asyncio.TimerHandle | None = None
        self._scope: anyio.CancelScope | None = None
        self._stopped = False
        self.task: asyncio.Task[None] | None = None  # the event loop itself keeps no task alive

    def begin(self) -> anyio.CancelScope:
        """The scope in which it is performed; to be called in its own task, outside of which scopes cannot be made."""
        self._scope = self._make_scope()
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
