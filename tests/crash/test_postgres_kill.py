"""A log in PostgreSQL whose writer, or whose primary, is killed or stopped: nothing acknowledged is lost, nothing is
doubled, and the chain is one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from pmagent.events.errors import EventsLost
from pmagent.events.event import Tail
from pmagent.events.log import now, opening_events
from pmagent.events.postgres import hold as hold_module
from pmagent.events.postgres import storage as storage_module
from pmagent.events.postgres.session import Unreachable
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import event_at, events
from pmagent.events.sequencer import Sequencer
from tests.crash.kill_writer import store_of, write
from tests.support.effort import rounds
from tests.support.forked import KILLED, Fork, forks
from tests.support.logs import BatchWriter, draft
from tests.support.one_writer import Log
from tests.support.postgres import SECONDS, Cluster, cluster, until

ROUNDS = rounds(60, 6)
WRITERS = 256


@pytest.fixture
def three() -> Iterator[Cluster]:
    """A primary and two standbys."""
    with cluster() as made:
        yield made


@pytest.mark.slow
def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged(three: Cluster) -> None:
    place = str(three.a.new_log())
    store = store_of(place)
    with_acknowledgement = 0
    with forks("kill_writer", place) as writer:
        for seed in range(ROUNDS):
            position, expected, ended = writer(seed)
            assert int(ended) == KILLED, f"round {seed}: the log did not open, or a write failed"
            if not int(position):
                continue
            with_acknowledgement += 1
            result = store.verify()
            assert result.finding is None, f"round {seed}"
            assert result.tail.position >= int(position), f"round {seed}"
            reader = store.reader()
            assert event_at(reader, int(position)).sum == expected, f"round {seed}"
            reader.close()
    assert with_acknowledgement > ROUNDS // 3


@pytest.mark.slow
def test_a_writer_that_was_stopped_while_another_took_its_log_adds_nothing(three: Cluster) -> None:
    place = str(three.a.new_log())
    store = PostgresLog(three.a.address(place.partition("#")[2]), three.a.folder)
    writer = Fork(partial(write, place, 7))
    assert writer.has_reported(1)
    os.kill(writer.pid, signal.SIGSTOP)
    with store.lease("others", seize=True) as lease:
        storage = lease.open()
        taken = storage.tail()
        after = BatchWriter(storage)
        after.write([draft(1)])
        os.kill(writer.pid, signal.SIGCONT)
        code, lines = writer.end()
        after.write([draft(2)])
        storage.close()
    assert code not in (0, KILLED), "it ended with an error of its own"
    said = [Tail(int(position), sum=sum) for position, sum in (line.split() for line in lines)]
    assert said
    assert said[-1].position <= taken.position, "an acknowledgement that it read late is of a batch that is there"
    assert store.verify(decode=True).ok
    reader = store.reader()
    for tail in (said[0], said[-1]):
        assert event_at(reader, tail.position).sum == tail.sum
    assert [event.id for event in events(reader, taken.position + 1)] == ["note-1", "note-2"]
    reader.close()


def test_events_that_an_asynchronous_failover_lost_are_named_and_nothing_goes_on(
    three: Cluster, tmp_path: Path
) -> None:
    three.a.configure(synchronous_standby_names="")
    three.a.reload()
    until(lambda: three.a.sql("SHOW synchronous_standby_names") == "", "commits wait for nobody")
    store = PostgresLog(three.address("lost"), tmp_path, replicated=False)
    with store.lease("tests") as lease:
        storage = lease.open()
        writer = BatchWriter(storage)
        writer.create(storage.log_id())
        writer.write([draft(1)])
        until(lambda: three.b.sql("SELECT position FROM pm.log") == "2", "the standby has it")
        three.b.stop()
        three.c.stop()
        writer.write([draft(2), draft(3)])
        writer.write([draft(4)])
        three.a.kill()
        three.b.start()
        three.b.promote()
        with pytest.raises(EventsLost, match="events 3 to 5") as caught:
            writer.write([draft(5)])
        assert caught.value.exit_code == 4
        with pytest.raises(EventsLost):
            storage.settle()
        storage.close()
    assert store.verify().ok, "by itself it is whole"


def test_of_two_primaries_the_one_without_standbys_acknowledges_nothing(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresLog(three.address("two"), tmp_path)  # its address names the old one first
    old = PostgresLog(three.a.address("two"), tmp_path)
    with store.lease("tests") as lease:
        storage = lease.open()
        writer = BatchWriter(storage)
        writer.create(storage.log_id())
        writer.write([draft(1)])
        three.fail_over()  # and the old one lives
        monkeypatch.setattr(storage_module, "APPEND_SECONDS", 0.5)
        monkeypatch.setattr(hold_module, "TAKE_SECONDS", 2.0)
        writer.write([draft(2)])
        assert storage.age[1] == 2, "it is on the new one"
        writer.write([draft(3)])
        storage.settle()
        monkeypatch.setattr(hold_module, "TAKE_SECONDS", 0.5)
        with pytest.raises(Unreachable), old.lease("others", seize=True):
            pass
        writer.write([draft(4)])
        storage.close()
    primary = next(one for one in (three.b, three.c) if one.sql("SELECT pg_is_in_recovery()") == "f")
    new = PostgresLog(primary.address("two"), tmp_path)
    assert new.verify(decode=True).ok
    reader = new.reader()
    assert [event.id for event in events(reader)][1:] == ["note-1", "note-2", "note-3", "note-4"]
    reader.close()


async def test_a_primary_killed_under_many_writers_loses_nothing_acknowledged(three: Cluster, tmp_path: Path) -> None:
    store = PostgresLog(three.address("many"), tmp_path)
    acknowledged: set[str] = set()
    enough, over = asyncio.Event(), asyncio.Event()

    async def append(log: Log, number: int) -> None:
        for count in range(1_000_000):
            is_last = over.is_set()
            event = await log.append(draft(number * 1_000_000 + count))
            acknowledged.add(event.id)
            if len(acknowledged) > 2 * WRITERS:
                enough.set()
            if is_last:
                return

    with store.lease("tests") as lease:
        storage = lease.open()
        sequencer = Sequencer(storage.tail())
        first = opening_events(storage, storage.log_id(), None, sequencer, now())
        log = Log(storage, sequencer)
        log.append_events(first)
        async with asyncio.timeout(3 * SECONDS), asyncio.TaskGroup() as writers:
            for number in range(1, WRITERS + 1):
                writers.create_task(append(log, number))
            await enough.wait()
            await asyncio.to_thread(three.a.kill)
            before = len(acknowledged)
            await asyncio.to_thread(three.fail_over)
            over.set()
        await log.aclose()
        epoch, timeline = storage.age
    assert (epoch > 1, timeline) == (True, 2), "the log was taken again, on the new primary's timeline"
    assert len(acknowledged) >= before + WRITERS
    assert store.verify(decode=True).ok
    reader = store.reader()
    found = [event.id for event in events(reader)][1:]
    assert len(found) == len(set(found))
    assert set(found) == acknowledged
    reader.close()
