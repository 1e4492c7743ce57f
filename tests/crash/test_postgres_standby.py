"""Daemons on several machines with one log: one holds it, the others follow and take over. Each has a workspace and a
registry of its own; they share nothing but the database."""

from __future__ import annotations

import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pmagent.events.postgres.schema import VERSION
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.effort import by_night
from tests.support.machines import Machine, says
from tests.support.postgres import WRITER, Proxy, Server, one_server, until
from tests.support.sandboxes import needs_sandbox
from tests.support.workers import joined, working

LEASE_MS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose logs have short leases; with two connections for each of a hundred attempts on workers."""
    with one_server(max_connections="300") as made:
        made.sql(f"ALTER TABLE pm.log ALTER lease_ms SET DEFAULT {LEASE_MS}")
        yield made


@pytest.fixture(autouse=True)
def allowed(workspace: Path) -> None:
    """The tasks of these workspaces may sleep, and none is tried again."""
    text = 'version: "1.0"\nwhitelist_tools: [echo, sleep]\nretries: {max: 0}\n'
    (workspace / "orchestra.config.yaml").write_text(text)


@pytest.fixture
def two(server: Server, workspace: Path, tmp_path: Path) -> tuple[Machine, Machine]:
    """Two machines with one log that is not there yet, and which nobody follows."""
    server.sql("TRUNCATE pm.standby")
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


def test_of_two_standbys_one_takes_over_and_the_other_one_follows_it(
    two: tuple[Machine, Machine], workspace: Path, tmp_path: Path, server: Server
) -> None:
    first, second = two
    third = Machine(tmp_path / "c", workspace, address_of(second))
    log = f"FROM pm.log WHERE name = '{address_of(second).partition('#')[2]}'"
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as one, third.up("--standby") as other:
            says(one, "standing by")
            says(other, "standing by")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "2", "both follow")
            epoch = int(server.sql(f"SELECT epoch {log}"))
            holder.kill()
            until(lambda: server.sql(f"SELECT epoch > {epoch} {log}") == "t", "one has taken over")
            until(lambda: len(second.facts("log.taken_over")) == 1, "and says so")
            note = server.sql(f"SELECT holder {log}")
            new, machine, left = (one, second, other) if f"pid {one.pid} " in note else (other, third, one)
            says(new, "ready;")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "the other one follows")
            assert left.poll() is None
            assert int(server.sql(f"SELECT epoch {log}")) == epoch + 1, "one epoch for one winner"
            assert machine.run("oa", "snapshot").code == 0
            new.kill()
            says(left, "ready;")
    assert [one["data"]["epoch"] for one in first.facts("log.taken_over")] == [epoch + 1, epoch + 2]
    assert first.run("log", "verify").code == 0


def address_of(machine: Machine) -> str:
    """Where its log lies."""
    text = (machine.workspace / ".pmagent/config.toml").read_text()
    return str(tomllib.loads(text)["storage"]["log"])


def test_a_standby_of_an_older_release_than_the_schema_takes_nothing_over(
    two: tuple[Machine, Machine], server: Server
) -> None:
    first, second = two
    log = f"FROM pm.log WHERE name = '{address_of(first).partition('#')[2]}'"
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            until(lambda: server.sql("SELECT count(*) FROM pm.standby") == "1", "it follows")
            epoch = server.sql(f"SELECT epoch {log}")
            server.sql(f"INSERT INTO pm.version VALUES ({VERSION + 1})")  # a later release brings it up to date
            try:
                holder.send_signal(signal.SIGTERM)
                assert holder.wait(SECONDS) == 0
                _, errors = standby.communicate(timeout=SECONDS)
                assert standby.returncode == 2
                assert b"use the later release" in errors
                with second.up("--standby") as again:
                    _, errors = again.communicate(timeout=SECONDS)
                    assert (again.returncode, b"use the later release" in errors) == (2, True)
                assert server.sql(f"SELECT epoch {log}") == epoch, "nobody has the log"
            finally:
                server.sql(f"DELETE FROM pm.version WHERE version > {VERSION}")
    assert second.facts("log.taken_over") == []
    assert second.run("log", "verify").code == 0


@by_night
@needs_sandbox
@pytest.mark.slow
def test_what_runs_on_workers_is_taken_up_by_the_standby_when_the_holder_is_killed(
    two: tuple[Machine, Machine], server: Server, tmp_path: Path
) -> None:
    first, second = two
    joined(server)
    name, count = address_of(first).partition("#")[2], 100
    asked = "intent: wait, tools: [sleep], labels: [linux]"
    tasks = (f'- {{task_id: t{n}, {asked}, inputs: {{args: ["{10 + n % 20}"]}}}}\n' for n in range(count))
    (first.workspace / "plan.yaml").write_text("".join(tasks))
    settings = {"logs": [name], "capacity": count // 2}
    default = "ALTER TABLE pm.log ALTER lease_ms SET DEFAULT"
    server.sql(f"{default} 30000")  # also a machine with much to do renews it
    with (
        working(server, tmp_path / "one", first.workspace, **settings) as one,
        working(server, tmp_path / "two", first.workspace, **settings) as other, first.up() as holder,
    ):  # fmt: skip
        says(holder, "ready;")
        server.sql(f"{default} {LEASE_MS}")
        with second.up("--standby") as standby:
            says(standby, "standing by")
            run = "run", "Wait", "--plan", "plan.yaml", "--detach", "--concurrency", str(count)
            assert first.run(*run).code == 0
            until(lambda: one.claims() + other.claims() == count, "all tasks run")
            holder.kill()
            says(standby, "ready;")
            until(lambda: len(second.facts("run.ended")) == 1, "the run is over")
            assert one.claims() + other.claims() == count
    requested = [event["position"] for event in second.facts("task.attempt_requested")]
    exited = [event["causation"] for event in second.facts("task.exited")]
    assert (len(requested), sorted(exited)) == (count, sorted(requested)), "each was asked for, and has ended, once"
    assert {event["data"]["exit_code"] for event in second.facts("task.exited")} == {0}
    assert second.facts("effect.interrupted") == []
    assert second.run("log", "verify").code == 0
    assert second.run("replay").code == 0


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
