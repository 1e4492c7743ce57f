"""A log whose time stands ahead of this machine's clock (that was wrong once) delays nothing, and is told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.actors.core.intake import Intake
from pmagent.contracts.oa import OaPermitRequested
from pmagent.events import log
from pmagent.events.blobs import BlobStore
from pmagent.events.event import parse_time, time_after
from pmagent.events.log import now
from pmagent.events.redact import Redactor
from pmagent.service.host import open_host
from pmagent.service.io import RealIo
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.memory_disk import MemoryDisk

YEARS = 3 * 365 * 24 * 3600.0


class Clocks:
    """The machine's clocks: the real one may be set, both go on only when somebody sleeps."""

    CLOCK_BOOTTIME = 7

    def __init__(self) -> None:
        self.real, self.steady, self.slept = 1_800_000_000 * 10**9, 10**12, 0.0

    def time_ns(self) -> int:
        """See time."""
        return self.real

    def clock_gettime_ns(self, _: int) -> int:
        """See time."""
        return self.steady

    async def sleep(self, seconds: float) -> None:
        """See anyio."""
        self.real += round(seconds * 1e9)
        self.steady += round(seconds * 1e9)
        self.slept += seconds


def simulated(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    """Clocks in place of the machine's."""
    made = Clocks()
    monkeypatch.setattr(log, "time", made)
    monkeypatch.setattr("anyio.sleep", made.sleep)
    return made


def real_io(stood: str) -> RealIo:
    def nothing(position: int) -> Any:
        raise AssertionError(position)

    return RealIo(Path("/nowhere"), Intake(Redactor([]), BlobStore(MemoryDisk(), "/blobs")), nothing, stood)


@each("ahead", [0.0, 1.0, 3600.0, YEARS])
@each("seconds", [0.5, 60.0, 3600.0])
async def test_a_timer_takes_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch, ahead: float, seconds: float) -> None:
    clocks = simulated(monkeypatch)
    stood = time_after(now(), ahead)
    live = real_io(stood)
    at = time_after(live.now(), seconds)
    await live.sleep_until(at)
    assert clocks.slept == pytest.approx(seconds, abs=0.001)
    assert live.now() >= at, "its event is not before its time"


@each("ahead", [3600.0, YEARS])
async def test_a_start_takes_up_what_is_left_of_it(monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    clocks = simulated(monkeypatch)
    first = real_io(time_after(now(), ahead))
    at = time_after(first.now(), 100.0)
    await clocks.sleep(40.0)
    clocks.slept = 0.0
    await real_io(first.now()).sleep_until(at)
    assert clocks.slept == pytest.approx(60.0, abs=0.1)


async def test_a_clock_that_is_set_back_meanwhile_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = simulated(monkeypatch)
    live = real_io("")
    clocks.real += round(YEARS * 1e9)  # wrong by years
    at = time_after(live.now(), 120.0)
    clocks.real -= round(YEARS * 1e9)  # and right again
    await live.sleep_until(at)
    assert clocks.slept == pytest.approx(120.0, abs=0.01)


def test_it_is_told_and_permits_expire_at_their_pace(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log's last event stands three years ahead; then the clock is right again."""
    ahead = [YEARS]
    time_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: time_ns() + round(ahead[0] * 1e9))
    assert pmagent(workspace, "oa", "snapshot").code == 0
    ahead[0] = 0.0
    told = pmagent(workspace, "status", "--format", "json").document["log"]
    assert told["ahead_s"] == pytest.approx(YEARS, rel=0.01)
    assert "ahead of this machine's clock" in pmagent(workspace, "status").text
    assert "ahead of this machine's clock" in pmagent(workspace, "doctor").text

    async def session() -> None:
        async with open_host(workspace, "tests") as host:
            asked = OaPermitRequested(action="diagnostic", subject="x", holder="t", uses=1, seconds=60)
            await host.ready()
            granted = await host.ask(asked, "oa.permit-1", {"oa.permit_granted"})
            left = parse_time(granted.data.expires_at) - parse_time(host.runtime.now())
            assert 0 < left.total_seconds() <= 60

    anyio.run(session)
