"""Wall clocks of a database and of a log's holder that are set wrong by a day: no lease follows them, and the times of
a log never decrease. libfaketime sets that of the database; Python's own is another one in the holder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from tests.support.commands import SECONDS
from tests.support.machines import Machine, says
from tests.support.postgres import Server, one_server, programs, until, with_rights

LEASE_MS = 6000
DAY: Final = 86_400


CLOCK = """
import pathlib, sys, time
ahead, now = pathlib.Path(sys.argv.pop()), time.time_ns
time.time_ns = lambda: now() + int(ahead.read_text()) * 10**9
time.time = lambda: time.time_ns() / 1e9
from pmagent.__main__ import main
main()
"""


class Clock:
    """A wall clock for processes; clocks that only go on are the machine's. ``file``: how far it is ahead."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"clock-{os.getpid()}"
        self.set(0)

    def words(self) -> list[str]:
        """The words before a command whose wall clock this is."""
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not found:
            pytest.skip("faketime is not installed (apt-get install faketime)")
        once = "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"
        return ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME_TIMESTAMP_FILE={self.file}", *once]

    @staticmethod
    def clear() -> None:
        """Remove what killed processes with such a clock have left."""
        for left in Path("/dev/shm").glob("*faketime_s*_[0-9]*"):
            if not Path("/proc", left.name.rpartition("_")[2]).exists():
                left.unlink(missing_ok=True)

    def set(self, seconds: int) -> None:
        """Let it be so far ahead of the machine's."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+}\n")
        new.replace(self.file)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose logs have short leases."""
    with one_server() as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}")
        yield made
    Clock.clear()


@pytest.fixture
def two(server: Server, workspace: Path, tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines with one log that is not there yet, and which nobody follows."""
    server.sql("TRUNCATE pm.standby")
    address = str(server.new_log())
    return Machine(tmp_path / "a", workspace, address), Machine(tmp_path / "b", workspace, address)


@contextmanager
def up(machine: Machine, clock: Clock) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon there, whose wall clock is that one."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", CLOCK, "up", str(clock.file)], cwd=machine.workspace, env=machine.environ,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)


def check(server: Server, first: Machine, second: Machine, holder: subprocess.Popen[bytes]) -> float:
    """The holder goes on holding, beside a standby that takes over when it is gone, and the log's times never decrease:
    how many seconds the last one is ahead."""
    state = "SELECT epoch || ' ' || renewals FROM pm.log ORDER BY log_no DESC LIMIT 1"

    def is_renewed(before: list[int]) -> bool:
        epoch, renewals = map(int, server.sql(state).split())
        assert epoch == before[0], "somebody took over"
        return renewals > before[1] + 4

    before = [int(word) for word in server.sql(state).split()]
    until(lambda: is_renewed(before), "the lease is renewed, for longer than it lasts")
    assert first.run("oa", "snapshot").code == 0
    holder.kill()
    until(lambda: int(server.sql(state).split()[0]) == before[0] + 1, "the standby takes over")
    until(lambda: second.run("oa", "snapshot").code == 0, "and acts")
    assert second.run("log", "verify").code == 0
    assert second.run("replay").code == 0
    times = [event["time"] for event in second.facts("*")]
    assert times == sorted(times)
    return datetime.fromisoformat(times[-1]).timestamp() - time.time()


@pytest.mark.parametrize("seconds", [DAY, -DAY])
def test_a_database_whose_clock_is_set_by_a_day_moves_no_lease_and_no_time_of_the_log(
    server: Server, two: tuple[Machine, Machine], seconds: int
) -> None:
    first, second = two
    clock = Clock(server.folder)
    server.stop()
    command = with_rights(("pg_ctl", "-D", server.data, "-l", server.folder / "log", "-t", str(SECONDS), "-w", "start"))
    at = command.index(str(programs() / "pg_ctl"))
    command[at:at] = clock.words()  # behind the change of the user: who begins it owns its clock
    subprocess.run(command, check=True, cwd="/", timeout=SECONDS, stdout=subprocess.DEVNULL)
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
            clock.set(seconds)
            ahead = float(server.sql("SELECT extract(epoch FROM clock_timestamp())")) - time.time()
            assert abs(ahead - seconds) < DAY / 2
            assert abs(check(server, first, second, holder)) < DAY / 2
            says(standby, "ready;")
    assert [one["data"]["why"] for one in second.facts("log.taken_over")] == ["lost"]


@pytest.mark.parametrize("seconds", [DAY, -DAY])
def test_a_holder_whose_clock_is_set_by_a_day_keeps_its_lease_and_times_never_decrease(
    server: Server, two: tuple[Machine, Machine], tmp_path: Path, seconds: int
) -> None:
    first, second = two
    clock = Clock(tmp_path)
    with up(first, clock) as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
            assert first.run("oa", "snapshot").code == 0
            clock.set(seconds)
            ahead = check(server, first, second, holder)
            assert abs(ahead - max(0, seconds)) < DAY / 2
            says(standby, "ready;")
    assert [one["data"]["why"] for one in second.facts("log.taken_over")] == ["lost"]
