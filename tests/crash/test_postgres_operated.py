"""A log in PostgreSQL and what operators and networks do to its servers: nothing acknowledged is lost unsaid, nothing
is doubled, and what does not concern a log does not stop it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pmagent.events.errors import Deposed, EventsLost
from pmagent.events.log import now, opening_events
from pmagent.events.postgres import hold as hold_module
from pmagent.events.postgres import storage as storage_module
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.schema import prepare
from pmagent.events.postgres.storage import PostgresStorage
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import events
from tests.crash.test_postgres_outcomes import WAITING, Waiting, begun, check
from tests.support.commands import spawn
from tests.support.daemons import running
from tests.support.effort import by_night
from tests.support.forked import KILLED, Fork
from tests.support.logs import BatchWriter, draft
from tests.support.postgres import READER, WRITER, Proxy, Server, cluster, one_server, run, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


@pytest.fixture
def log(server: Server, tmp_path: Path) -> PostgresLog:
    """A log that is not there."""
    return PostgresLog(server.new_log(), tmp_path, replicated=False)


def position_of(server: Server, log: PostgresLog) -> int:
    """The end of the log, as its server has it."""
    return int(server.sql(f"SELECT position FROM pm.log WHERE name = '{log.place.partition('#')[2]}'"))


@pytest.fixture
def through(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, PostgresLog]]:
    """A log behind a proxy, whose writer does not wait for long."""
    monkeypatch.setattr(storage_module, "APPEND_SECONDS", 0.3)
    monkeypatch.setattr(hold_module, "TAKE_SECONDS", 0.3)
    folder = tmp_path / "proxy"
    folder.mkdir()
    address = Address(f"postgresql:///postgres?host={folder}&user={WRITER}", server.new_log().log)
    with closing(Proxy(server, folder)) as proxy:
        yield proxy, PostgresLog(address, tmp_path, replicated=False)


def test_a_batch_arrives_whose_answers_are_all_lost_and_is_there_once(
    server: Server, through: tuple[Proxy, PostgresLog]
) -> None:
    proxy, log = through
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = begun(storage)
        writer.write([draft(1)])
        proxy.silence(1)
        waiting = Waiting(writer, 2)
        until(lambda: position_of(server, log) == 3, "it arrives")
        assert not waiting.is_over, "nobody was told"
        proxy.speak()
        waiting.end()
        writer.write([draft(3)])
    check(log, writer, ["note-1", "note-2", "note-3"])


def test_a_holder_that_hears_no_answers_is_deposed_by_one_that_does(
    server: Server, through: tuple[Proxy, PostgresLog], tmp_path: Path
) -> None:
    proxy, log = through
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        proxy.silence(1)
        waiting = Waiting(writer, 1)
        until(lambda: position_of(server, log) == 2, "it arrives")
        direct = PostgresLog(server.address(log.place.partition("#")[2]), tmp_path / "other", replicated=False)
        with direct.lease("others", seize=True) as second, closing(second.open()) as taken:
            after = BatchWriter(taken)
            after.write([draft(2)])
            proxy.speak()

            def go_on() -> None:
                waiting.end()  # the batch is there: its own answer may come first
                writer.write([draft(4)])

            with pytest.raises(Deposed):
                go_on()
            after.write([draft(3)])
        storage.close()
    check(direct, after, ["note-1", "note-2", "note-3"])


def test_a_daemon_without_standbys_says_why_it_waits_and_goes_on_with_one(workspace: Path) -> None:
    with cluster() as three:
        (workspace / ".pmagent").mkdir(exist_ok=True)
        with (workspace / ".pmagent/config.toml").open("a") as file:
            file.write(f'\n[storage]\nlog = "{three.a.address("lab")}"\n')

        def looked_at() -> tuple[str, str]:
            checks = spawn("doctor", "--format", "json", cwd=workspace).document["checks"]
            (found,) = (check for check in checks if check["name"] == "database")
            return found["state"], found["text"]

        with running(workspace), ThreadPoolExecutor(1) as asking:
            assert looked_at()[0] == "ok"
            for standby in (three.b, three.c):
                standby.stop()
            asked = asking.submit(spawn, "oa", "snapshot", cwd=workspace)
            until(lambda: three.a.sql(WAITING) != "0", "a batch waits")
            state, text = looked_at()
            assert (state, "no synchronous standby is connected" in text) == ("warn", True), text
            assert not asked.done()
            three.b.start()
            assert asked.result().code == 0
            assert looked_at()[0] == "ok"
        three.a.configure(synchronous_standby_names="")
        three.a.reload()
        until(lambda: three.a.sql("SHOW synchronous_standby_names") == "", "commits wait for nobody")
        state, text = looked_at()
        assert (state, "synchronous_standby_names is empty" in text) == ("fail", True), text
        refused = spawn("oa", "snapshot", cwd=workspace)
        assert (refused.code, "must not hold a log" in refused.errors) == (2, True)


def test_a_slot_that_nobody_reads_holds_back_no_more_than_it_may(server: Server, log: PostgresLog) -> None:
    server.configure(max_slot_wal_keep_size="16MB", wal_keep_size="0")
    server.reload()
    server.sql("SELECT pg_create_physical_replication_slot('gone', true)")
    try:
        with log.lease("tests") as lease, closing(lease.open()) as storage:
            writer = begun(storage)
            number = 0

            def is_lost() -> bool:
                nonlocal number
                number += 1
                writer.write([draft(number)])
                server.sql("SELECT pg_switch_wal()")
                server.sql("CHECKPOINT")
                return server.sql("SELECT wal_status FROM pg_replication_slots") == "lost"

            until(is_lost, "the server lets go of the slot")
            writer.write([draft(number + 1)])
        check(log, writer, [f"note-{one}" for one in range(1, number + 2)])
    finally:
        server.sql("SELECT pg_drop_replication_slot('gone')")
        server.configure()
        server.reload()


def copied(source: Path, target: Path) -> None:
    """Put the files of ``source`` in the place of ``target``."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


@by_night
@pytest.mark.parametrize("how", ["restored from a backup", "never waited for"])
def test_events_that_a_promoted_standby_lacks_are_named_and_nothing_goes_on(tmp_path: Path, how: str) -> None:
    with cluster() as three:
        log = PostgresLog(three.address("promoted"), tmp_path, replicated=False)  # the servers wait for standbys
        with log.lease("tests") as lease:
            storage = lease.open()
            writer = begun(storage)
            writer.write([draft(1)])
            until(lambda: three.b.sql("SELECT position FROM pm.log") == "2", "the standby has it")
            three.b.stop()
            if how == "restored from a backup":
                copied(three.b.data, three.b.folder / "backup")
                three.b.start()
                three.c.stop()  # what follows is acknowledged because this one has it
                writer.write([draft(2), draft(3)])
                three.b.stop()
                copied(three.b.folder / "backup", three.b.data)
            else:
                three.a.configure(synchronous_standby_names="ANY 1 (c)")
                three.a.reload()
                writer.write([draft(2), draft(3)])
                three.c.stop()
            three.a.kill()
            three.b.start()
            three.b.promote()
            with pytest.raises(EventsLost, match="events 3 to 4") as caught:
                writer.write([draft(4)])
            assert caught.value.exit_code == 4
            with pytest.raises(EventsLost):
                storage.settle()
            storage.close()
        assert PostgresLog(three.b.address("promoted"), tmp_path).verify().ok, "by itself it is whole"


def looked_at(server: Server, log: PostgresLog) -> int:
    """So many pages are read to find the head of the log."""
    name = log.place.partition("#")[2]
    text = f"EXPLAIN (ANALYZE, BUFFERS) SELECT position FROM pm.log WHERE name = '{name}'"
    plan = server.sql(f"SET enable_seqscan = off; {text}")
    return sum(map(int, re.findall(r"Buffers: shared hit=(\d+)", plan.partition("Planning")[0])))


def test_a_snapshot_that_is_kept_for_long_slows_a_log_within_bounds_and_leaves_nothing(
    server: Server, log: PostgresLog
) -> None:
    count = 300
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = begun(storage)
        with psycopg.connect(f"host={server.folder} user=postgres") as kept:  # as pg_dump does
            kept.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            kept.execute("SELECT count(*) FROM pm.log")
            for number in range(1, count + 1):
                writer.write([draft(number)])
            assert looked_at(server, log) < count // 4, "versions of a head lie beside each other"
            kept.rollback()
        server.sql("VACUUM pm.log")
        grown = int(server.sql("SELECT pg_relation_size('pm.log')"))
        for number in range(count + 1, 2 * count + 1):
            writer.write([draft(number)])
        assert int(server.sql("SELECT pg_relation_size('pm.log')")) <= grown, "its room is used again"
        assert looked_at(server, log) < 10
    check(log, writer, [f"note-{number}" for number in range(1, 2 * count + 1)])


def test_no_key_of_a_log_depends_on_the_collations_of_the_system(server: Server) -> None:
    keys = """
        SELECT c.relname || '.' || a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace,
        unnest(i.indkey::int2[], i.indcollation::oid[]) AS k(number, rule)
        JOIN pg_attribute a ON a.attnum = k.number
        WHERE n.nspname = 'pm' AND a.attrelid = c.oid AND k.rule NOT IN (0, '"C"'::regcollation)"""
    assert server.sql(keys) == ""


def warned(server: Server, database: str) -> str:
    """The words of the server to whoever connects."""
    return run("psql", "-h", server.folder, "-U", "postgres", "-d", database, "-c", "SELECT 1").stderr


def test_a_log_lives_on_where_the_systems_collations_have_changed(server: Server, tmp_path: Path) -> None:
    rules = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C'"
    server.sql(f"CREATE DATABASE other TEMPLATE template0 {rules}")
    prepare(server.address(role="postgres", database="other"), [WRITER], [READER])
    log = PostgresLog(server.address("other", database="other"), tmp_path, replicated=False)
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        begun(storage).write([draft(1)])
    server.sql("UPDATE pg_database SET datcollversion = '0' WHERE datname = 'other'")
    assert "collation version mismatch" in warned(server, "other")
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = BatchWriter(storage)
        writer.write([draft(2)])
    check(log, writer, ["note-1", "note-2"])


@pytest.mark.parametrize("opened", [False, True])
def test_a_holder_killed_between_its_take_over_and_its_first_event_leaves_a_whole_log(
    log: PostgresLog, *, opened: bool
) -> None:
    with log.lease("first") as lease, closing(lease.open()) as storage:
        begun(storage)

    def take(out: int) -> None:
        with log.lease("second") as lease:
            if opened:
                lease.open()
            os.write(out, b"taken\n")
            signal.pause()

    second = Fork(take)
    assert second.has_reported(1)
    epoch = log.age()[0]
    os.kill(second.pid, signal.SIGKILL)
    assert second.end()[0] == KILLED
    with log.lease("third", seize=True) as lease, closing(lease.open()) as storage:
        assert storage.age[0] == epoch + 1
        runtime_begins(storage)
    assert log.verify(decode=True).ok
    with closing(log.reader()) as reader:
        (taken,) = (event for event in events(reader) if event.type == "log.taken_over")
    assert '"previous"' in bytes(taken.data).decode()
    assert ", second" in bytes(taken.data).decode(), "whoever took it before, and said nothing"


def runtime_begins(storage: PostgresStorage) -> None:
    """Append what a holder appends first."""
    writer = BatchWriter(storage)
    first = opening_events(storage, storage.log_id(), storage.recovered, writer.sequencer, now())
    assert [event.type for event in first] == ["log.taken_over"]
    writer.committer.submit(first)
    assert writer.committer.commit() is not None
