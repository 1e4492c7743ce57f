"""Whether the daemon answers, asked by one task for all browsers and all pages (docs/design.md §18.1)."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import msgspec

from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.service.wire import RemoteError

ASK_SECONDS: Final = 0.5
"""The pause between an answer and the next question."""
FAR_SECONDS: Final = 2.0
"""The same where the daemon is on another machine, and each question a row in its database."""
DEADLINE_SECONDS: Final = 2.0
"""A daemon that has not answered after so long does not answer. With the pause, and what a stream takes to tell it, a
page knows within 3 s."""
WANTED_SECONDS: Final = 60.0
"""So long after a page was made or a browser listened it is asked; nobody else wants to know."""


class Liveness(msgspec.Struct, frozen=True):
    """``answers``: the daemon did when it was asked last; ``since``: the log time of its last answer before it fell
    silent, or of its first one after."""

    answers: bool
    since: str


class Pulse:
    """Asks with ``ask`` as long as somebody wants to know. ``run`` is to run as a task; the rest is called on its loop.
    ``state`` is what is known; ``pause``: how long it waits before the next question."""

    def __init__(self, ask: Callable[[], Awaitable[Any]]) -> None:
        self._ask = ask
        self._heard = now()
        self._until = -math.inf
        self._wanted = anyio.Event()
        self.state = Liveness(answers=True, since=self._heard)
        self.pause = ASK_SECONDS

    def want(self) -> None:
        """Somebody wants to know, for a while."""
        self._until = time.monotonic() + WANTED_SECONDS
        self._wanted.set()

    async def run(self) -> None:
        """Ask, until cancelled."""
        while True:
            if time.monotonic() > self._until:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            await self.look()
            await anyio.sleep(self.pause)

    async def look(self) -> None:
        """Ask once, and wait for ``DEADLINE_SECONDS`` at most."""
        try:
            with anyio.fail_after(DEADLINE_SECONDS):
                await self._ask()
        except RemoteError:
            self._answered()  # whatever it met, it is there
        except (PmagentError, TimeoutError):
            if self.state.answers:
                self.state = Liveness(answers=False, since=self._heard)
        else:
            self._answered()

    def _answered(self) -> None:
        self._heard = now()
        if not self.state.answers:
            self.state = Liveness(answers=True, since=self._heard)
