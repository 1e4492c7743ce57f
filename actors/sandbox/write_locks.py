"""Locks on writable folders: one run a folder at a time, so that guards and later findings belong to that run."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from pmagent.actors.sandbox.spec import within

Folders = tuple[str, ...]


class WriteLocks:
    """Claims of the runs of one event loop, granted in the order in which they were made, as soon as no folder of a
    claim lies in one of an earlier claim, nor the other way round. Claims of other folders do not wait for each other.
    """

    def __init__(self) -> None:
        self._held: list[Folders] = []
        self._waiting: deque[tuple[Folders, anyio.Event]] = deque()

    @asynccontextmanager
    async def of(self, folders: Folders) -> AsyncIterator[None]:
        """Hold ``folders``, all or none, while the block lasts; waits for them."""
        granted = anyio.Event()
        self._waiting.append((folders, granted))
        self._grant()
        try:
            await granted.wait()
            yield
        finally:
            if granted.is_set():
                self._held.remove(folders)
            else:
                self._waiting.remove((folders, granted))
            self._grant()

    def _grant(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for folders, granted in waiting:
            earlier = (*self._held, *(waits for waits, _ in self._waiting))
            if any(_overlap(folders, others) for others in earlier):
                self._waiting.append((folders, granted))
            else:
                self._held.append(folders)
                granted.set()


def _overlap(one: Folders, other: Folders) -> bool:
    return any(within(a, b) or within(b, a) for a in one for b in other)
