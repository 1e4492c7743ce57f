"""A process that opens the log for something else takes no run up, whatever became due meanwhile."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pmagent.actors.core.actor import Io, Performers, Resources
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.oa import OaSnapshotRequested
from pmagent.contracts.orchestra_events import RunRequested, TaskAttemptFailed, TaskAttemptRequested, TaskExited
from pmagent.contracts.payload import typed
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Event
from pmagent.events.log import now
from pmagent.events.reader import runs
from pmagent.service.host import open_host
from pmagent.service.io import RealIo
from tests.support.orchestra import RUN, config, exited, plan

PAUSE_SECONDS = 0.25


@pytest.fixture(autouse=True)
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt fails at once, without a sandbox."""

    async def fail(event: Event, _: Io) -> TaskExited:
        return exited(event, 1)

    def performers(_: Resources) -> Performers:
        return {TaskAttemptRequested: fail}

    monkeypatch.setattr("pmagent.workers.placing.performers", performers)


async def never(_: RealIo, at: str) -> None:
    """In place of sleeping until ``at``."""
    del at
    await anyio.sleep_forever()


async def first_attempt(workspace: Path) -> tuple[TaskAttemptFailed, int]:
    """A run of one task, left when its first attempt has failed; and the position of the timer for the next."""
    asked = RunRequested(run_id=RUN, intent="x", plan=plan({"a": []}), config=config(retries=1, base=PAUSE_SECONDS))
    async with open_host(workspace, "orchestra.run") as host:
        await host.ready()
        failed: TaskAttemptFailed = (await host.ask(asked, RUN, {"task.attempt_failed"}, 20.0)).data
        wakes = [one for one in host.runtime.engine.effects.open.values() if isinstance(one.data, TimerRequested)]
        [timer] = [one.position for one in wakes if one.data.at == failed.retry_at]
    return failed, timer


async def opened(workspace: Path, surface: str, pause: int) -> list[type]:
    """The kinds of what comes into the log with a host that takes a snapshot of the OA's state, when the timer that was
    asked for at position ``pause`` has fired."""
    async with open_host(workspace, surface) as host:
        await host.ask(OaSnapshotRequested(), "oa.snapshot-1", {"oa.snapshot_taken"}, 20.0)
        effects = host.runtime.engine.effects
        with anyio.fail_after(120):
            await host.until(lambda: pause not in effects.open)
        blobs = BlobStore(RealDisk(), str(host.layout.blobs))
        found = [type(typed(stored, blobs).data) for run in runs(host.storage, 1) for stored in run]
    return found[found.index(DaemonStopped) + 1 :]


async def play(workspace: Path, surface: str) -> list[type]:
    """The kinds of events of a host that was opened when the pause was over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealIo, "sleep_until", never)  # however long the first one takes to end, its timer does not fire
        failed, pause = await first_attempt(workspace)
    while now() <= failed.retry_at:  # noqa: ASYNC110 - the clock tells nobody
        await anyio.sleep(0.01)
    return await opened(workspace, surface, pause)


def test_a_pause_that_is_over_leads_to_no_attempt_where_no_run_is_taken_up(workspace: Path) -> None:
    found = anyio.run(play, workspace, "oa.snapshot")
    assert found.index(DaemonStarted) < found.index(TimerFired), "it is known who lives before anything comes due"
    assert TaskAttemptRequested not in found


def test_a_pause_that_is_over_leads_to_the_next_attempt_where_runs_are_taken_up(workspace: Path) -> None:
    found = anyio.run(play, workspace, "daemon")
    assert found.index(DaemonStarted) < found.index(TimerFired) < found.index(TaskAttemptRequested)
