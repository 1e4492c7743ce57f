"""Daemons on several machines with one log: one holds it, the others follow and take over. Each has a workspace and a
registry of its own; they share nothing but the database."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.effort import by_night
from tests.support.machines import Machine, says
from tests.support.postgres import WRITER, Proxy, Server, one_server, until
from tests.support.sandboxes import needs_sandbox

LEASE_MS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose logs have short leases."""
    with one_server() as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}")
        yield made


@pytest.fixture(autouse=True)
def allowed(workspace: Path) -> None:
    """The tasks of these workspaces may sleep, and none is tried again."""
    text = 'version: "1.0"\nwhitelist_tools: [echo, sleep]\nretries: {max: 0}\n'
    (workspace / "orchestra.config.yaml").write_text(text)


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
            checks = second.run("doctor", "--format", "json").document["checks"]
            (daemon,) = (one for one in checks if one["name"] == "daemon")
            assert (daemon["state"], "on another machine" in daemon["text"]) == ("ok", True)
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


@by_night
def test_a_standby_that_is_behind_when_it_takes_over_knows_all_that_was_acknowledged(
    two: tuple[Machine, Machine],
) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            standby.send_signal(signal.SIGSTOP)
            assert first.run("pause", "--operator", "ada").code == 0
            position = first.status()["log"]["position"]
            holder.send_signal(signal.SIGTERM)
            assert holder.wait(SECONDS) == 0
            standby.send_signal(signal.SIGCONT)
            says(standby, "ready;")
            assert second.status()["paused"]["operator_id"] == "ada"
            (taken,) = second.facts("log.taken_over")
            assert taken["position"] > position
    assert second.run("replay").code == 0


def processes_of(seconds: int) -> int:
    """How many programs of tasks run that sleep for just so long."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            program, *arguments = path.read_bytes().split(b"\0")
            found += program.endswith(b"/sleep") and arguments[:1] == [b"%d" % seconds]
    return found


def sleeping(machine: Machine, count: int, seconds: int) -> None:
    """Have so many tasks run there, all at once."""
    tasks = "\n".join(
        f'- {{task_id: t{number}, intent: wait, tools: [sleep], inputs: {{args: ["{seconds}"]}}}}'
        for number in range(count)
    )
    (machine.workspace / "plan.yaml").write_text(tasks)
    asked = machine.run("run", "Wait", "--plan", "plan.yaml", "--detach", "--concurrency", str(count))
    assert asked.code == 0, asked.errors
    until(lambda: processes_of(seconds) >= count, "all tasks run")


def check_cut_off(machine: Machine, count: int) -> None:
    """All that the earlier holder left open was judged once, and nothing of it began again."""
    until(lambda: len(machine.facts("effect.interrupted")) >= count, "what was open is judged")
    requested = [one["position"] for one in machine.facts("task.attempt_requested")]
    ended = [one["data"]["request"] for one in machine.facts("effect.interrupted")]
    assert sorted(ended) == sorted(set(requested)), "each was cut off once, and none was asked for again"
    assert machine.run("log", "verify").code == 0
    assert machine.run("replay").code == 0


@by_night
@needs_sandbox
@pytest.mark.slow
def test_a_holder_that_is_killed_while_a_hundred_tasks_run_is_followed_and_nothing_runs_twice(
    two: tuple[Machine, Machine],
) -> None:
    first, second = two
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            sleeping(first, 100, 61_001)
            holder.kill()
            says(standby, "ready;")
            check_cut_off(second, 100)
            assert processes_of(61_001) == 0
            assert [one["data"]["why"] for one in second.facts("log.taken_over")] == ["lost"]


@by_night
@needs_sandbox
@pytest.mark.slow
def test_a_holder_that_is_cut_off_from_its_database_ends_its_tasks_before_the_next_one_acts(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    folder = server.folder.parent / "proxy"
    folder.mkdir()
    proxy, direct = Proxy(server, folder), server.new_log()
    through = f"postgresql:///postgres?host={folder}&user={WRITER}#{direct.log}"
    first, second = (
        Machine(tmp_path / name, workspace, address) for name, address in (("a", through), ("b", str(direct)))
    )
    try:
        with first.up() as holder:
            says(holder, "ready;")
            with second.up("--standby") as standby:
                says(standby, "standing by")
                sleeping(first, 1, 61_002)
                proxy.silence()
                says(standby, "ready;")
                check_cut_off(second, 1)
                assert processes_of(61_002) == 0, "it runs beside its successor"
                proxy.speak()
                assert holder.wait(SECONDS) != 0
                assert [one["data"]["why"] for one in second.facts("log.taken_over")] == ["expired"]
    finally:
        proxy.close()


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
