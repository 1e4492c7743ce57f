"""Model calls on a real log: they outlive a stop, a second start goes on with them, and replay says the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from langchain_core.messages import AIMessage

from pmagent.actors.model.models import Models
from pmagent.actors.registry import all_actors
from pmagent.contracts.model import ModelCallRequested, ModelFailed, ModelReplied
from pmagent.contracts.oa import OaSnapshotRequested
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.service.host import Host, open_host
from tests.support.gateway import question
from tests.support.histories import problems, record
from tests.support.models import scripted


def told(host: Host) -> list[Event]:
    """The events that are durable."""
    return [typed(stored) for stored in events(host.storage)]


async def until(host: Host, kind: type[Any], holds: Callable[[Any], bool] = lambda _: True) -> Event:
    """The first event with such a payload, when it is durable."""
    with anyio.fail_after(120):
        while True:
            for event in told(host):
                if isinstance(event.data, kind) and holds(event.data):
                    return event
            await anyio.lowlevel.checkpoint()


def test_a_call_that_a_stop_cuts_off_is_made_again_by_the_next_start(workspace: Path, tmp_path: Path) -> None:
    hanging, answering = scripted(), scripted(AIMessage('{"ok": true}'))
    asked = question(action="diagnostic")

    async def first() -> None:
        async with open_host(workspace, "daemon", resources=[Models({}, {"toy:one": hanging})]) as host:
            await host.runtime.append(asked, "ask", "tests", "run")
            await until(host, ModelCallRequested)
            while not hanging.hung:
                await anyio.lowlevel.checkpoint()

    async def second() -> None:
        async with open_host(workspace, "daemon", resources=[Models({}, {"toy:one": answering})]) as host:
            reply = await until(host, ModelReplied)
            assert (reply.data.content, reply.correlation) == ('{"ok": true}', "run")
            assert [event.type for event in told(host)].count("effect.interrupted") == 1
            attempts = [event.data.attempt for event in told(host) if isinstance(event.data, ModelCallRequested)]
            assert attempts == [1, 2]
            assert not [event for event in told(host) if isinstance(event.data, ModelFailed)]

    anyio.run(first)
    anyio.run(second)
    assert problems(record(workspace, "now", tmp_path / "histories"), all_actors()) == []


async def test_a_blocked_kernel_stops_a_call_that_hangs(workspace: Path) -> None:
    async with open_host(workspace, "daemon", resources=[Models({}, {"toy:one": scripted()})]) as host:
        await host.runtime.append(question(action="feature_work"), "ask", "tests", "run")
        await until(host, ModelCallRequested)
        (workspace / "share" / "PM_BOOTSTRAP_STATE.json").unlink()
        await host.ask(OaSnapshotRequested(), "look", {"oa.snapshot_taken"})
        failed = await until(host, ModelFailed)
        assert (failed.data.code, failed.data.attempts) == ("cancelled", 1)
