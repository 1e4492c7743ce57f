"""What performers may use of the world, for real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread

from actors.intake import Intake
from events.event import Event, parse_time
from events.log import now

_NAP_SECONDS = 60.0
"""A sleeper looks at the clock at least so often, so that a clock that was set, or a machine that slept, is noticed."""


class RealIo:
    """The ``Io`` of the daemon. ``read`` gives the durable event at a position; it may block."""

    def __init__(self, workspace: Path, intake: Intake, read: Callable[[int], Event]) -> None:
        self._workspace = workspace
        self._intake = intake
        self._read = read

    @property
    def workspace(self) -> Path:
        """See Io."""
        return self._workspace

    def now(self) -> str:
        """See Io."""
        return now()

    async def sleep_until(self, at: str) -> None:
        """See Io. Raises ValueError when ``at`` is no log time."""
        due = parse_time(at)
        while (left := (due - parse_time(now())).total_seconds()) > 0:
            await anyio.sleep(min(left, _NAP_SECONDS))

    async def store_blob(self, content: bytes) -> str:
        """See Io."""
        return await anyio.to_thread.run_sync(self._intake.content, content)

    async def event(self, position: int) -> Event:
        """See Io."""
        return await anyio.to_thread.run_sync(self._read, position)
