"""The surfaces of a live workspace: their newest reading, and their changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import anyio
import anyio.to_thread

from pmagent.actors.kernel.effects import watch
from pmagent.actors.kernel.surfaces import digest
from pmagent.contracts.kernel import WATCHER, KernelObserved
from pmagent.events.event import Event
from pmagent.service.host import Host

FIRST_SECONDS: Final = 35.0
"""When the reading that a start asks for has not come by then, it will not: its performer has ended."""


class Observed:
    """The durable readings of the surfaces since this start; ``newest``: None before the first."""

    def __init__(self) -> None:
        self.newest: KernelObserved | None = None
        self._first = anyio.Event()

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener: remember the newest reading."""
        for event in events:
            if isinstance(event.data, KernelObserved):
                self.newest = event.data
                self._first.set()

    async def reading(self) -> KernelObserved:
        """A reading: the one that this start asked for, when it is there, or the newest since."""
        await self._first.wait()
        assert self.newest is not None, "set before the event"
        return self.newest


def resources(_: Mapping[str, str]) -> Iterable[object]:
    """The readings since this start, of which there are none yet."""
    return (Observed(),)


async def surfaces_read(host: Host) -> None:
    """Return when the surfaces have been read since this start, and what the OA took back because of what it saw has
    been taken back: both became durable together."""
    await host.resources[Observed].reading()


async def watch_surfaces(host: Host) -> None:
    """Append the surfaces whenever they changed, until cancelled: the mode that permits rest on is that of now. The
    reading that each start asks for comes first."""
    observed, known = host.resources[Observed], ""
    with anyio.move_on_after(FIRST_SECONDS):  # it may have failed, and changes must be seen all the same
        known = digest((await observed.reading()).surfaces)
    async for seen in watch(host.layout.workspace, known=known):
        last = observed.newest
        same = last is not None and last.existing == seen.existing
        if last is not None and same and digest(last.surfaces) == digest(seen.surfaces):
            continue  # a snapshot or boot has read the same meanwhile
        id_ = f"kernel.observed:{host.storage.log_id()}:{host.runtime.engine.sequencer.position}"
        draft = await anyio.to_thread.run_sync(host.runtime.intake.fact, seen, id_, WATCHER)
        await host.runtime.append_draft(draft)
