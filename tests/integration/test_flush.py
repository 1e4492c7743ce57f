"""Waiting for the documents counts what is durable, also where the process that made it so has not yet heard of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.lowlevel

from pmagent.contracts.oa import OaSnapshotRequested
from pmagent.events.event import Event
from pmagent.service.host import Host, open_host


class Late:
    """Stands before a host, and tells it of what is durable when it is told to."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.held: list[tuple[Sequence[Event], Sequence[str]]] = []
        listeners = host.runtime._listeners
        listeners[listeners.index(host.hear)] = self.hold

    def hold(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Keep it."""
        self.held.append((events, sums))

    def tell(self) -> None:
        """Pass on what was kept, and from now on all."""
        for events, sums in self.held:
            self._host.hear(events, sums)
        listeners = self._host.runtime._listeners
        listeners[listeners.index(self.hold)] = self._host.hear


async def test_a_flush_waits_for_events_that_only_the_log_knows_of(workspace: Path) -> None:
    state = workspace / "share" / "orchestrator_assistant" / "STATE.json"
    state.unlink(missing_ok=True)
    async with open_host(workspace, "daemon") as host:
        await host.ready()
        late = Late(host)
        await host.runtime.append(OaSnapshotRequested(), "snapshot-1", "operator", "snapshot-1")
        while not any(event.type == "oa.snapshot_taken" for events, _ in late.held for event in events):
            await anyio.lowlevel.checkpoint()
        flushed = anyio.Event()

        async def flush() -> None:
            await host.flush()
            flushed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush)
            await anyio.wait_all_tasks_blocked()
            assert not flushed.is_set()
            late.tell()
        assert state.is_file()
