"""Attempts on workers of other hosts: real daemons, workers, databases and sandboxes. A worker shares no file with the
daemon, where this machine lets it have mounts and a network of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import spawn
from tests.support.effort import by_night, rounds, some
from tests.support.postgres import Proxy, Server, one_server
from tests.support.workers import (
    CONFIG,
    HANDS,
    Worker,
    joined,
    logged,
    made_lab,
    ran,
    rows,
    running_plan,
    short_lease,
    sleepers,
    task,
    until,
    working,
)

SECURITY = 7


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where workers may claim."""
    with one_server() as made:
        joined(made)
        yield made


@pytest.fixture
def lab(workspace: Path, server: Server) -> Path:
    """A workspace whose log lies there, and no worker."""
    return made_lab(workspace, server)


def test_a_task_runs_on_a_worker_and_its_end_stands_in_the_log(
    lab: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery-staple")
    with working(server, tmp_path / "one", lab):
        monkeypatch.delenv("DEPLOY_TOKEN")
        with short_lease(lab):
            done = ran(
                lab,
                task("first", "cat notes.txt; printf correct-horse-; echo battery-staple; echo more >&2;"
                     " echo kept > $ARTIFACTS/file; ls -a; exit 0"),
                task("second", "cat $INPUTS/first/file; exit 3", depends_on=["first"]),
                task("third", "touch notes.txt || exit 7", depends_on=["first"]),
                {**task("fourth", "echo on this host"), "labels": ["nowhere"]},
            )  # fmt: skip
            run = done.document["run_id"]
            ends = {one["name"]: one["exit_code"] for one in done.document["tasks"]}
            assert ends == {"first": 0, "second": 3, "third": 7, "fourth": 0}
            said = {name: spawn("logs", run, name, cwd=lab).text for name in ends}
    assert "a file of the workspace" in said["first"]
    assert "orchestra.config.yaml" in said["first"]
    assert "correct-horse-battery" not in said["first"], "the worker masks what only its host knows"
    assert "more" in said["first"]
    assert "kept" in said["second"]
    exited = logged(lab, "task.exited")
    assert [any("worker one" in note for note in one["notes"]) for one in exited].count(True) == 3
    assert sum(len(one["artifacts"]) for one in exited) == 4 * len(("stdout", "stderr")) + len(("file",))
    assert rows(server) == [], "what is durable in the log needs no row"
    assert server.sql("SELECT count(*) FROM pm.load l JOIN pm.log USING (log_no) WHERE name = 'lab'") == "0"
    assert spawn("log", "verify", cwd=lab).code == 0
    assert spawn("replay", cwd=lab).code == 0
    assert spawn("rebuild", "--check", cwd=lab).code == 0


@by_night
def test_output_that_is_too_long_keeps_beginning_and_end(lab: Path, server: Server, tmp_path: Path) -> None:
    script = "echo begin; head -c 9000000 /dev/zero | tr '\\0' x; echo; echo end"
    with working(server, tmp_path / "one", lab), short_lease(lab):
        assert ran(lab, task("long", script)).code == 0
    (exited,) = logged(lab, "task.exited")
    stdout = exited["stdout"]
    assert (stdout["total_bytes"], stdout["cut"]) == (9_000_000 + 11, True)
    assert 3_000_000 < stdout["size_bytes"] < 5_000_000
    assert stdout["size_bytes"] + stdout["gap_bytes"] >= stdout["total_bytes"]
    assert exited["last_lines"][-1] == "end"


def test_a_worker_that_is_killed_is_told_of_and_its_attempt_never_made_again(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with short_lease(lab, 3), working(server, tmp_path / "one", lab) as worker:
        with running_plan(lab, task("long", "sleep 311; exit 0")) as run:
            until(lambda: bool(sleepers("311")), "it sleeps")
            with working(server, tmp_path / "two", lab) as other:
                worker.kill()
                done = run.result()
                assert other.claims() == 0
        assert done.code == 1
    until(lambda: not sleepers("311"), "its box is gone")
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
    assert len(logged(lab, "task.attempt_requested")) == 1


@by_night
def test_a_worker_that_stands_still_beyond_its_lease_has_no_box_and_its_report_is_refused(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with short_lease(lab, 3), working(server, tmp_path / "one", lab) as worker:
        with running_plan(lab, task("long", "sleep 312; exit 0")) as run:
            until(lambda: bool(sleepers("312")), "it sleeps")
            worker.process.send_signal(signal.SIGSTOP)
            until(lambda: not sleepers("312"), "its box ends while the worker stands still")
            done = run.result()
            assert rows(server) == []
            worker.process.send_signal(signal.SIGCONT)
        until(lambda: "result refused" in worker.said() or "not claimed" in worker.said(), worker.said())
        assert done.code == 1
        assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
        assert ran(lab, task("next", "exit 0")).code == 0, "it takes the next attempt"
    assert worker.claims() == 2


@by_night
def test_a_worker_without_its_database_ends_its_box_and_comes_back(lab: Path, server: Server, tmp_path: Path) -> None:
    folder = server.folder.parent / "proxy"
    folder.mkdir()
    address = f"postgresql:///postgres?host={folder}&user={HANDS}"
    with (
        closing(Proxy(server, folder)) as proxy, short_lease(lab, 3),
        working(server, tmp_path / "one", lab, address=address) as worker,
    ):  # fmt: skip
        with running_plan(lab, task("long", "sleep 313; exit 0")) as run:
            until(lambda: bool(sleepers("313")), "it sleeps")
            proxy.part()
            until(lambda: not sleepers("313"), "its box ends")
            done = run.result()
        proxy.heal()
        assert done.code == 1
        assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
        assert ran(lab, task("next", "exit 0")).code == 0
        assert worker.stop() == 0


def test_several_workers_make_each_attempt_once(lab: Path, server: Server, tmp_path: Path) -> None:
    count = rounds(12, 6)
    with (
        short_lease(lab), working(server, tmp_path / "one", lab, capacity=2) as one,
        working(server, tmp_path / "two", lab) as two, working(server, tmp_path / "three", lab) as three,
    ):  # fmt: skip
        assert ran(lab, *(task(f"t{n}", f"echo {n}") for n in range(count))).code == 0
        claimed = [worker.claims() for worker in (one, two, three)]
    assert sum(claimed) == count
    assert sum(number > 0 for number in claimed) > 1, claimed
    assert len(logged(lab, "task.exited")) == count


@pytest.mark.parametrize(
    ("settings", "more", "why"),
    some([
     ({"tools": ["cat"]}, {}, "sh is not among its tools"),
     ({"sizes": {"seconds": 5}}, {}, "sizes.seconds"),
     ({}, {"read": "./, /srv/data"}, "/srv/data is not among its paths"),
     ({"paths": ["/srv"]}, {"read": "./, /tmp/of-this-host"}, "/tmp/of-this-host is not among its paths"),
     ({}, {"net": True}, "example.com is not among its hosts"),
     ({"sizes": {"load_mib": 1}}, {"large": True}, "sizes.load_mib"),
    ], 2),
)  # fmt: skip
def test_a_worker_refuses_what_its_own_file_does_not_permit_and_says_why(
    lab: Path, server: Server, tmp_path: Path, settings: dict[str, object], more: dict[str, Any], why: str
) -> None:
    text, made = CONFIG, task("asks", "exit 0")
    if "read" in more:
        text += f"security: {{fs: {{allow_read: [{more['read']}]}}}}\n"
    if "net" in more:
        text += "policies: {allow_network: true}\nsecurity: {net: {allow_domains: [example.com]}}\n"
        made["constraints"] = {"sandbox": {"fs": "read-only", "net": "allow"}}
    if "large" in more:
        (lab / "large").write_bytes(os.urandom(2_000_000))
    (lab / "orchestra.config.yaml").write_text(text)
    with short_lease(lab), working(server, tmp_path / "one", lab, **settings):
        done = ran(lab, made)
    assert done.code == SECURITY
    (refused,) = logged(lab, "task.unstarted")
    assert why in refused["reason"]
    assert refused["reason"].startswith("worker one: ")
    assert not refused["again"]
    assert not logged(lab, "task.exited")


@by_night
def test_a_task_that_may_write_and_one_for_which_no_worker_is_there_run_on_their_own_host(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    (lab / "orchestra.config.yaml").write_text(CONFIG + "workers: {labels: [linux]}\n")
    writes = task("writes", "echo x > runs/made", constraints={"sandbox": {"fs": "rw"}})
    del writes["labels"]
    with short_lease(lab), working(server, tmp_path / "one", lab) as worker:
        other, there = task("other", "exit 0", labels=["linux", "gpu"]), task("there", "exit 0", labels=[])
        assert ran(lab, writes, other, there).code == 0
        assert worker.claims() == 1
    assert (lab / "runs/made").read_text() == "x\n"


@by_night
def test_a_pause_lets_nobody_begin_what_waits_and_ends_nothing_that_runs(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with short_lease(lab), working(server, tmp_path / "one", lab) as worker:
        with running_plan(lab, task("one", "sleep 4; exit 0"), task("other", "sleep 4; exit 0")) as run:
            until(lambda: sorted(rows(server)) == ["claimed", "open"], "one runs, one waits")
            assert spawn("pause", cwd=lab).code == 0
            until(lambda: "0" in rows(server, "epoch"), "nobody may claim it")
            until(lambda: rows(server) == ["open"], "the one has ended")
            assert worker.claims() == 1
            assert spawn("resume", cwd=lab).code == 0
            assert run.result().code == 0
        assert worker.claims() == 2


def test_a_cancellation_ends_the_box_and_withdraws_what_nobody_began(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with short_lease(lab), working(server, tmp_path / "one", lab):
        with running_plan(lab, task("one", "sleep 314; exit 0"), task("other", "sleep 314; exit 0")) as run:
            until(lambda: bool(sleepers("314")) and sorted(rows(server)) == ["claimed", "open"], "one runs")
            (begun,) = logged(lab, "run.requested")
            assert spawn("cancel", begun["run_id"], cwd=lab).code == 0
            assert run.result().code == 1
        assert not sleepers("314"), "its box was gone before that was said"
        until(lambda: len(logged(lab, "effect.cancelled")) == 2, "both have ended")
        until(lambda: rows(server) == [], "what is durable in the log needs no row")
    assert len(logged(lab, "effect.cancelled")) == 2
    assert not logged(lab, "effect.interrupted")


@by_night
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_runs_on_a_worker_outlives_the_daemon_and_its_end_is_taken_up(
    lab: Path, server: Server, tmp_path: Path, number: signal.Signals
) -> None:
    with working(server, tmp_path / "one", lab) as worker:
        with short_lease(lab) as daemon, running_plan(lab, task("long", "sleep 5; echo through")) as run:
            until(lambda: rows(server) == ["claimed"], "it runs")
            daemon.process.send_signal(number)
            daemon.process.communicate(timeout=60)
            run.result()
        with short_lease(lab):
            until(lambda: bool(logged(lab, "task.exited")), "its end is taken up")
        assert worker.claims() == 1
    (exited,) = logged(lab, "task.exited")
    assert (exited["exit_code"], exited["last_lines"]) == (0, ["through"])
    assert len(logged(lab, "task.attempt_requested")) == 1
    assert not logged(lab, "effect.interrupted")
    assert spawn("replay", cwd=lab).code == 0


def test_a_worker_that_is_told_to_end_says_so(lab: Path, server: Server, tmp_path: Path) -> None:
    with (
        short_lease(lab), working(server, tmp_path / "one", lab) as worker,
        running_plan(lab, task("long", "sleep 315; exit 0")) as run,
    ):  # fmt: skip
        until(lambda: bool(sleepers("315")), "it sleeps")
        assert worker.stop() == 0
        until(lambda: not sleepers("315"), "its box is gone")
        assert run.result().code == 1
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker stopped"]
    assert not list((worker.home / "work").iterdir())


@by_night
def test_what_is_left_of_a_killed_worker_is_cleared_away_and_no_other_works_in_its_folder(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    left = tmp_path / "one" / "work" / "left"
    left.mkdir(parents=True)
    with working(server, tmp_path / "one", lab):
        assert not left.exists()
        second = Worker(server, tmp_path / "one", lab)
        assert second.process.wait(60) == 2
        assert "another worker works in" in second.said()


@by_night
def test_a_worker_that_is_killed_in_the_middle_of_what_it_sends_leaves_nothing_of_it(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    sent = "SELECT coalesce(sum(octet_length(bytes)), 0) FROM pm.output"
    script = "for n in 1 2 3 4; do head -c 67000000 /dev/zero > $ARTIFACTS/$n; done; exit 0"
    with short_lease(lab, 3), working(server, tmp_path / "one", lab, sizes={"output_mib": 512}) as worker:
        with running_plan(lab, task("large", script)) as run:
            until(lambda: int(server.sql(sent)) > 2**27, "half of it is there")
            worker.kill()
            assert run.result().code == 1
        until(lambda: server.sql(sent) == "0", "the part is removed")
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
    assert not logged(lab, "task.exited")
    assert rows(server) == []
    assert spawn("log", "verify", cwd=lab).code == 0


@by_night
def test_workers_with_one_name_make_each_attempt_once_and_none_reports_for_another(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    server.sql("CREATE ROLE others LOGIN; GRANT pm_worker TO others")
    theirs = str(server.address(role="others"))
    with (
        short_lease(lab, 3), working(server, tmp_path / "a" / "same", lab) as one,
        working(server, tmp_path / "b" / "same", lab) as two,
        working(server, tmp_path / "c" / "same", lab, address=theirs) as three,
    ):  # fmt: skip
        assert ran(lab, *(task(f"t{n}", f"echo {n}") for n in range(9))).code == 0
        claimed = [worker.claims() for worker in (one, two, three)]
        assert sum(claimed) == 9
        for worker in (two, three):
            assert worker.stop() == 0
        with running_plan(lab, task("long", "sleep 317; exit 0")) as run:
            until(lambda: bool(sleepers("317")), "it sleeps")
            (claim,) = rows(server, "claim")
            forging = f"SET SESSION AUTHORIZATION others; SELECT pm.report('{claim}', 'forged')"
            assert server.sql(forging) == "", "whoever knows a claim is not who made it"
            assert rows(server) == ["claimed"]
            one.kill()
            assert run.result().code == 1
    assert len(logged(lab, "task.exited")) == 9
    assert [one["reason"] for one in logged(lab, "effect.interrupted")] == ["worker lost"]
