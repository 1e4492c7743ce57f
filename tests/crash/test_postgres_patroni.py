"""A log in databases that Patroni leads: hosts that lose their power, agents that freeze, and networks that part.

Writer, databases and etcd have a network and a mount namespace each. Acknowledgements are collected outside of all
of them, and held against the one log that is there in the end.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.test_postgres_outcomes import WAITING
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.effort import by_night
from tests.support.patroni import NODES, PatroniCluster, Writer, patroni_cluster
from tests.support.postgres import until

pytestmark = [pytest.mark.slow, by_night]
MANY = 500
TASKS = 8


@pytest.fixture(scope="module")
def nodes() -> Iterator[PatroniCluster]:
    """Three nodes, all of which are up again behind each test."""
    with patroni_cluster() as made:
        yield made


def check(nodes: PatroniCluster, log: str, writer: Writer) -> None:
    """All that was acknowledged is there, once."""
    found = nodes.read(log)
    assert len(found) == len(set(found))
    assert set(writer.acknowledged) <= set(found)


def test_a_leader_whose_host_loses_its_power_takes_nothing_acknowledged_along(nodes: PatroniCluster) -> None:
    old = nodes.leader()
    writer = nodes.writer("power", old)
    writer.more(MANY)
    others = [nodes.hosts[name] for name in NODES if name != old]
    nodes.hosts[old].part_from(*others)
    until(lambda: nodes.sql(old, WAITING) != "0", "a batch waits that no standby has")
    nodes.hosts[old].kill()
    nodes.hosts[old].meet(*others)
    new = nodes.leader(apart_from=old)
    writer.more(MANY)
    writer.end()
    assert new != old
    check(nodes, "power", writer)
    nodes.start(old)
    until(lambda: nodes.members("streaming") == 2, "the old leader follows the new one")


def test_of_two_leaders_the_one_whose_agent_froze_acknowledges_nothing(nodes: PatroniCluster) -> None:
    old = nodes.leader()
    writer = nodes.writer("frozen", old)
    writer.more(MANY)
    nodes.hosts[old].signal(signal.SIGSTOP, "patroni")
    nodes.leader(apart_from=old)
    writer.more(MANY)
    assert nodes.sql(old, "SELECT pg_is_in_recovery()") == "f", "it takes itself for the primary"
    again = nodes.writer("other", old)
    again.more(MANY)
    again.end()
    nodes.hosts[old].signal(signal.SIGCONT, "patroni")
    until(lambda: nodes.members("streaming") == 2, "the old leader is rewound, and follows")
    writer.more(MANY)
    writer.end()
    check(nodes, "frozen", writer)
    check(nodes, "other", again)


def test_a_leader_that_is_parted_from_standbys_and_etcd_is_left(nodes: PatroniCluster) -> None:
    old = nodes.leader()
    others = [nodes.hosts[name] for name in (*NODES, "etcd") if name != old]
    writer = nodes.writer("parted", old)
    writer.more(MANY)
    nodes.hosts[old].part_from(*others)
    nodes.leader(apart_from=old)
    writer.more(MANY)
    nodes.hosts[old].meet(*others)
    until(lambda: nodes.members("streaming") == 2, "the old leader follows")
    writer.end()
    check(nodes, "parted", writer)


def test_a_writer_that_is_parted_from_the_leader_alone_goes_on_when_it_is_back(nodes: PatroniCluster) -> None:
    leader = nodes.leader()
    writer = nodes.writer("alone", leader)
    writer.more(MANY)
    nodes.hosts["writer"].part_from(nodes.hosts[leader])
    until(lambda: nodes.members("streaming") == 2, "nothing else has happened")
    nodes.hosts["writer"].meet(nodes.hosts[leader])
    writer.more(MANY)
    writer.end()
    assert nodes.leader() == leader
    check(nodes, "alone", writer)


def test_tasks_on_a_worker_end_once_when_the_leader_is_lost_and_all_hosts_are_apart(
    nodes: PatroniCluster, workspace: Path, tmp_path: Path
) -> None:
    """Daemon, worker and databases share a network and no file. A claim that could not be renewed in time is lost, and
    its attempt interrupted; no attempt begins twice, and what was acknowledged is there."""
    host, old = nodes.hosts["writer"], nodes.leader()
    there = host.folder / "workspace"
    shutil.copytree(workspace, there)
    (there / ".pmagent").mkdir(exist_ok=True)
    (there / ".pmagent/config.toml").write_text(f'[storage]\nlog = "{nodes.address("tasks", old)}"\n')
    (there / "orchestra.config.yaml").write_text('version: "1.0"\nwhitelist_tools: [sleep]\nretries: {max: 0}\n')
    tasks = [
        f'- {{task_id: t{number}, intent: wait, tools: [sleep], labels: [linux], inputs: {{args: ["40"]}}}}\n'
        for number in range(TASKS)
    ]
    (there / "plan.yaml").write_text("".join(tasks))
    environ = clean_environment(XDG_STATE_HOME=str(host.folder / "state"))

    def run(*words: str) -> str:
        asked = host.start(*PMAGENT, "--workspace", there, *words, user="root", env=environ, stdout=-1, stderr=-1)
        out, err = asked.communicate(timeout=3 * SECONDS)
        assert asked.returncode == 0, out + err
        return str(out)

    run("trust", "--yes")
    with (host.folder / "daemon.log").open("wb") as output:
        host.start(*PMAGENT, "--workspace", there, "up", user="root", env=environ, stdout=output, stderr=output)
    until(lambda: "ready;" in (host.folder / "daemon.log").read_text(), "the daemon is up")
    said = nodes.worker("tasks", folder=str(tmp_path / "work"), tools=["sleep"], capacity=TASKS)
    until(lambda: nodes.sql(old, "SELECT count(*) FROM pm.worker") == "1", "the worker is there")
    name = run("run", "Wait", "--plan", str(there / "plan.yaml"), "--concurrency", str(TASKS), "--detach").strip()
    until(lambda: said.read_text().count(" claimed claim=") == TASKS, "all tasks run")
    nodes.hosts[old].kill()
    nodes.leader(apart_from=old)
    until(lambda: '"run.ended"' in run("log", "tail", "--type", "run.ended", "--format", "json"), "the run is over")
    lines = [json.loads(line) for line in run("log", "tail", "-n", "all", "--format", "json").splitlines()]
    requested = [one["position"] for one in lines if one["type"] == "task.attempt_requested"]
    ended = [
        one["causation"] if one["type"] == "task.exited" else one["data"]["request"]
        for one in lines if one["type"] in ("task.exited", "effect.interrupted")
    ]
    assert (len(requested), sorted(ended)) == (TASKS, requested), "each attempt was asked for, and has ended, once"
    assert said.read_text().count(" claimed claim=") == TASKS, "and began once"
    assert name in {one["correlation"] for one in lines if one["type"] == "run.requested"}
    run("log", "verify", "--decode")
    run("replay")
    run("down")
    nodes.start(old)
    until(lambda: nodes.members("streaming") == 2, "the old leader follows the new one")
