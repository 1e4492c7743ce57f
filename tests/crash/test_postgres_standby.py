"""Daemons on several machines with one log: one holds it, the others follow and take over. Each has a workspace and a
registry of its own; they share nothing but the database."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.machines import Machine, says
from tests.support.postgres import Server, one_server, until

LEASE_MS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose logs have short leases."""
    with one_server() as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}")
        yield made


@pytest.fixture
def two(server: Server, workspace: Path, tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines with one log that is not there yet."""
    address = str(server.new_log())
    return Machine(tmp_path / "a", workspace, address), Machine(tmp_path / "b", workspace, address)


def test_a_standby_follows_and_takes_over_from_a_holder_that_lets_go(two: tuple[Machine, Machine]) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            assert first.run("oa", "snapshot").code == 0
            position = first.status()["log"]["position"]

            def followed() -> bool:
                lease = second.status()["lease"]
                return [one["position"] for one in lease["standbys"]] == [position]

            until(followed, "it has folded all of it")
            seen = second.status()
            assert (seen["daemon"], f"pid {holder.pid} " in seen["holder"]) == ("elsewhere", True)
            assert seen["lease"]["released"] is False
            assert 0 < seen["lease"]["left_s"] <= LEASE_MS / 1000
            holder.send_signal(signal.SIGTERM)
            says(standby, "ready;")
            assert holder.wait(SECONDS) == 0
            assert second.run("oa", "snapshot").code == 0
            assert first.status()["daemon"] == "elsewhere", "the other way round now"
            taken = second.facts("log.taken_over")
            assert [one["data"]["why"] for one in taken] == ["released"]
            assert first.run("log", "verify").code == 0
            assert second.run("down").code == 0
        assert standby.wait(SECONDS) == 0
    assert second.run("replay").code == 0
    assert second.status()["daemon"] == "none"


def test_a_standby_is_stopped_in_order_and_leaves_no_trace(two: tuple[Machine, Machine], server: Server) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it says that it follows")
            assert second.run("down").code == 0
            assert standby.wait(SECONDS) == 0
        assert server.sql("SELECT count(*) FROM pm.standby") == "0"
        assert holder.poll() is None


def test_a_log_in_a_folder_has_no_standby(workspace: Path) -> None:
    ran = warm.run(
        [*PMAGENT, "--trust-workspace", "up", "--standby"], cwd=workspace, env=clean_environment(), check=False,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
    )  # fmt: skip
    assert ran.returncode == 2
    assert b"has no standby" in ran.stderr
