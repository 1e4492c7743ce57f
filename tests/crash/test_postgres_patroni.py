"""A log in databases that Patroni leads: hosts that lose their power, agents that freeze, and networks that part.

Writer, databases and etcd have a network and a mount namespace each. Acknowledgements are collected outside of all
of them, and held against the one log that is there in the end.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.crash.test_postgres_outcomes import WAITING
from tests.support.effort import by_night
from tests.support.patroni import NODES, PatroniCluster, Writer, patroni_cluster
from tests.support.postgres import until

pytestmark = [pytest.mark.slow, by_night]
MANY = 500


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
