"""A log in PostgreSQL: who may do what to it, what is found when it was changed, and what its readers see."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.events.errors import CorruptLog, OutcomeUnknown, PmagentError
from pmagent.events.event import Tail
from pmagent.events.postgres import reader as reader_module
from pmagent.events.postgres import storage as storage_module
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.checks import Unsafe
from pmagent.events.postgres.reader import PostgresReader
from pmagent.events.postgres.session import DatabaseRefused, Failed, Session, Unreachable
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import events
from tests.support.logs import BatchWriter, draft
from tests.support.postgres import READER, SECONDS, WRITER, Server, cluster, one_server, until

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%pm.append%'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


@pytest.fixture
def log(server: Server, tmp_path: Path) -> PostgresLog:
    """A log of four pages and six events."""
    made = PostgresLog(server.new_log(), tmp_path, replicated=False)
    fill(made, (1, 3, 1))
    return made


@pytest.fixture(scope="module")
def many(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[PostgresLog, list[bytes]]:
    """A log of ten pages, and its lines."""
    log = PostgresLog(server.new_log(), tmp_path_factory.mktemp("many"), replicated=False)
    fill(log, (1, 3, 1, 1, 2, 5, 1, 4, 1))
    with closing(log.reader()) as reader:
        return log, reader.read(1).splitlines(keepends=True)


def all_lines(reader: PostgresReader, position: int, size: int) -> Iterator[bytes]:
    """The lines from ``position`` on, read in pieces of ``size`` bytes."""
    while found := reader.read(position, size):
        yield found
        position += found.count(b"\n")


def fill(log: PostgresLog, batches: tuple[int, ...]) -> list[Tail]:
    """Begin the log, and write so many events in each batch."""
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = BatchWriter(storage)
        if not storage.tail().position:
            writer.create(storage.log_id())
        for count in batches:
            start = storage.tail().position
            writer.write([draft(start + n) for n in range(count)])
    return writer.acknowledged


def name_of(log: PostgresLog) -> str:
    """Its name in the database."""
    return log.place.partition("#")[2]


def change(server: Server, log: PostgresLog, text: str) -> None:
    """Change the log's tables as only a superuser can who switches their guards off."""
    number = server.sql(f"SELECT log_no FROM pm.log WHERE name = '{name_of(log)}'")
    server.sql(f"SET session_replication_role = replica; {text.replace('LOG', number)}")


def test_nobody_changes_or_removes_a_page(server: Server, log: PostgresLog) -> None:
    for role in (WRITER, READER, "pm_owner", "postgres"):
        for text in (
            "UPDATE pm.page SET lines = ''", "DELETE FROM pm.page", "TRUNCATE pm.page", "DELETE FROM pm.epoch",
            "UPDATE pm.epoch SET epoch = 0",
        ):
            with pytest.raises(AssertionError, match=r"permission denied|nobody may change"):
                server.sql(f"SET ROLE {role}; {text}")
    assert log.verify().ok


def test_roles_write_by_the_functions_alone_and_a_reader_by_none(server: Server, log: PostgresLog) -> None:
    for role, text in (
        (WRITER, "INSERT INTO pm.page VALUES (1, 1, 1, 1, 1, '')"), (WRITER, "UPDATE pm.log SET epoch = 0"),
        (READER, "SELECT pm.take('x', 0, 'x', 'x', 'x', 'x', false)"), (READER, "UPDATE pm.log SET epoch = 0"),
        (READER, "SELECT pm.tell(1, 1, 1, false)"), (WRITER, "CREATE TABLE pm.x ()"),
    ):
        with pytest.raises(AssertionError, match="permission denied"):
            server.sql(f"SET ROLE {role}; {text}")
    reading = PostgresLog(server.address(name_of(log), READER), Path("/nowhere"), replicated=False)
    assert reading.verify().ok
    with pytest.raises(DatabaseRefused, match="permission denied"), reading.lease("tests"):
        pass


def test_the_role_that_began_a_log_writes_it_and_no_other(server: Server, log: PostgresLog) -> None:
    server.sql("CREATE ROLE other LOGIN; GRANT pm_writer TO other")
    other = PostgresLog(server.address(name_of(log), "other"), Path("/nowhere"), replicated=False)
    with pytest.raises(DatabaseRefused, match="belongs to another role"), other.lease("tests"):
        pass
    server.sql(f"GRANT {WRITER} TO other")
    fill(other, (1,))
    assert log.verify().events == 7


def test_of_two_who_take_a_log_of_one_epoch_one_has_it(server: Server) -> None:
    takes = [
        server.sql(f"SET ROLE {WRITER}; SELECT taken FROM pm.take('raced', 0, '{token}', '', '', '', false)")
        for token in ("first", "second", "first")
    ]
    assert takes == ["t", "f", "t"], "and whose answer was lost may ask again"


EXCHANGED = (
    "UPDATE pm.page SET first = first + 100 WHERE log_no = LOG AND first = 2;"
    "UPDATE pm.page SET first = 2 WHERE log_no = LOG AND first = 6"
)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [("UPDATE pm.page SET lines = set_byte(lines, 40, 65) WHERE log_no = LOG AND first = 3", 3, "sum"),
     ("DELETE FROM pm.page WHERE log_no = LOG AND first = 2", 2, "missing"),
     ("DELETE FROM pm.page WHERE log_no = LOG AND first = 6", 6, "missing"),
     ("UPDATE pm.page SET lines = substr(lines, 1, length(lines) - 1) WHERE log_no = LOG AND first = 3", 5, "no end"),
     ("UPDATE pm.page SET last = 6 WHERE log_no = LOG AND first = 3", 5, "kept as"),
     ("UPDATE pm.page SET batch = 9 WHERE log_no = LOG AND first = 6", 6, "kept as batch 9"),
     ("UPDATE pm.page SET epoch = 9 WHERE log_no = LOG AND first = 2", 3, "epoch"),
     (EXCHANGED, 2, "sum"),
     ("UPDATE pm.log SET position = 5 WHERE log_no = LOG", 5, "exchanged"),
     ("UPDATE pm.log SET position = 9 WHERE log_no = LOG", 7, "3 durable events are missing"),
     ("UPDATE pm.log SET sum = sha256('x') WHERE log_no = LOG", 6, "exchanged"),
     ("UPDATE pm.log SET log_id = 'x' WHERE log_no = LOG", 1, "log.created")],
)  # fmt: skip
def test_verification_names_the_place_of_each_change(
    server: Server, log: PostgresLog, text: str, position: int, reason: str
) -> None:
    change(server, log, text)
    found = log.verify(decode=True).finding
    assert found is not None
    assert (found.position, found.file.startswith("page ")) == (position, True)
    assert reason in found.reason


def test_a_page_behind_the_noted_end_is_found(server: Server, log: PostgresLog) -> None:
    with closing(log.reader()) as reader:
        before = list(events(reader))[-2]
    change(server, log, f"UPDATE pm.log SET position = 5, batch = 3, sum = '\\x{before.sum}' WHERE log_no = LOG")
    found = log.verify().finding
    assert found is not None
    assert (found.position, found.reason) == (6, "it lies behind the end that the log's row notes")


def test_readers_stop_at_a_change_and_hand_out_what_precedes_it(server: Server, log: PostgresLog) -> None:
    change(server, log, "DELETE FROM pm.page WHERE log_no = LOG AND first = 3")
    with closing(log.reader()) as reader:
        read: list[int] = []
        with pytest.raises(CorruptLog) as caught:
            read.extend(event.position for event in events(reader, 2))
        assert (read, caught.value.position) == ([], 3) or (read, caught.value.position) == ([2], 3)


def test_a_page_that_rots_on_the_servers_disk_is_corruption(tmp_path: Path) -> None:
    with one_server() as server:
        log = PostgresLog(server.new_log(), tmp_path, replicated=False)
        fill(log, (1, 3, 1))
        path = server.data / server.sql("SELECT pg_relation_filepath('pm.page')")
        server.sql("CHECKPOINT")
        server.kill()
        raw = bytearray(path.read_bytes())
        raw[-100] ^= 1  # rows fill a page from its end
        path.write_bytes(raw)
        server.start()
        for ask in (log.verify, lambda: log.written(3)):
            with pytest.raises(CorruptLog, match="invalid page"):
                ask()


class Appending(threading.Thread):
    """Appends one event."""

    def __init__(self, writer: BatchWriter) -> None:
        super().__init__()
        self._writer = writer

    def run(self) -> None:
        """In its thread."""
        self._writer.write([draft(self._writer.storage.tail().position)])


def test_a_writer_waits_while_its_table_is_locked_or_its_server_is_started_again(
    server: Server, log: PostgresLog
) -> None:
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = BatchWriter(storage)
        holding = psycopg.connect(f"host={server.folder} user=postgres")
        holding.execute("LOCK TABLE pm.log IN ACCESS EXCLUSIVE MODE")  # as VACUUM FULL and REINDEX do
        waiting = Appending(writer)
        waiting.start()
        until(lambda: server.sql(BLOCKED) == "1", "the batch waits")
        holding.commit()
        holding.close()
        waiting.join(SECONDS)
        server.kill()
        again = Appending(writer)
        again.start()
        server.start()
        again.join(SECONDS)
        assert not again.is_alive()
        assert storage.tail() == writer.acknowledged[-1]
        assert storage.tail().position == 8
    assert log.verify(decode=True).events == 8


def test_servers_that_do_not_keep_promises_hold_no_log(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="synchronous_standby_names"), PostgresLog(server.new_log(), tmp_path).lease("t"):
        pass
    root = PostgresLog(server.new_log("postgres"), tmp_path, replicated=False)
    with pytest.raises(Unsafe, match="superuser"), root.lease("t"):
        pass
    server.sql("CREATE ROLE owning LOGIN; GRANT pm_owner, pm_writer TO owning")
    owning = PostgresLog(server.new_log("owning"), tmp_path, replicated=False)
    with pytest.raises(Unsafe, match="owner is true"), owning.lease("t"):
        pass
    server.sql("CREATE DATABASE bare")
    bare = PostgresLog(Address(server.address(database="bare").dsn, "x"), tmp_path, replicated=False)
    with pytest.raises(DatabaseRefused, match="not prepared"), bare.lease("t"):
        pass
    server.sql(f"ALTER ROLE {WRITER} SET synchronous_commit = off")
    fill(PostgresLog(server.new_log(), tmp_path, replicated=False), (1,))  # a session of ours sets it anew
    server.sql(f"ALTER ROLE {WRITER} RESET synchronous_commit")
    server.sql(f"ALTER ROLE {WRITER} SET default_transaction_read_only = on")
    with pytest.raises(DatabaseRefused, match="takes no writes"), PostgresLog(
        server.new_log(), tmp_path, replicated=False
    ).lease("t"):
        pass
    server.sql(f"ALTER ROLE {WRITER} RESET default_transaction_read_only")


def test_a_writers_role_that_was_renamed_is_told_of_with_what_mends_it(server: Server, tmp_path: Path) -> None:
    server.sql("CREATE ROLE before LOGIN; GRANT pm_writer TO before")
    address = server.address("renamed", "before")
    fill(PostgresLog(address, tmp_path, replicated=False), (1,))
    server.sql("ALTER ROLE before RENAME TO after")
    log = PostgresLog(server.address("renamed", "after"), tmp_path, replicated=False)
    with pytest.raises(DatabaseRefused, match='"before" does not exist') as raised:
        fill(log, (1,))
    mend = raised.value.hint.partition(": ")[2]
    server.sql(mend.replace("NEW", "after").replace("OLD", "before"))
    assert fill(log, (1,))


def test_an_isolation_that_a_role_was_given_costs_no_batch(server: Server, tmp_path: Path) -> None:
    server.sql(f"ALTER ROLE {WRITER} SET default_transaction_isolation = 'repeatable read'")
    address = server.new_log()
    log = PostgresLog(address, tmp_path, replicated=False)
    try:
        with log.lease("tests") as lease, closing(lease.open()) as storage:
            holding = psycopg.connect(f"host={server.folder} user=postgres")
            holding.execute("UPDATE pm.log SET renewed = now()")  # as whoever tells, or renews, does
            waiting = Appending(BatchWriter(storage))
            waiting.start()
            until(lambda: server.sql(BLOCKED) == "1", "the batch waits")
            holding.commit()
            holding.close()
            waiting.join(SECONDS)
            assert not waiting.is_alive()
        assert server.sql(f"SELECT epoch FROM pm.log WHERE name = '{address.log}'") == "1", "it was taken once"
    finally:
        server.sql(f"ALTER ROLE {WRITER} RESET default_transaction_isolation")


@pytest.mark.parametrize(("setting", "writes"), [("full_page_writes", False), ("fsync", False), ("fsync", True)])
def test_a_setting_that_is_weakened_later_ends_the_writer(
    server: Server, log: PostgresLog, monkeypatch: pytest.MonkeyPatch, setting: str, *, writes: bool
) -> None:
    monkeypatch.setattr(storage_module, "CHECK_SECONDS", float("inf") if writes else -1.0)
    monkeypatch.setattr(reader_module, "OUTAGE_SECONDS", 0.0)
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = BatchWriter(storage)
        writer.create(storage.log_id())
        storage.settle()
        server.configure(**{setting: "off"})
        server.reload()
        try:
            until(lambda: server.sql(f"SHOW {setting}") == "off", "it is read")
            with pytest.raises(OutcomeUnknown, match=setting):
                writer.write([draft(1)]) if writes else storage.settle()
        finally:
            server.configure()
            server.reload()
        storage.close()


def test_hosts_that_cannot_be_reached_are_named(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=str(tmp_path)):
        PostgresLog(Address(f"postgresql:///x?host={tmp_path}", "lab"), tmp_path).exists()


def test_a_reader_is_woken_by_what_is_written(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "POLL_SECONDS", 10 * SECONDS)  # so only a notification wakes it
    with closing(log.reader()) as reader:
        end = reader.tail().position
        woken = threading.Thread(target=reader.changes, args=(end, 10 * SECONDS))
        woken.start()
        with log.lease("tests") as lease, closing(lease.open()) as storage:
            writer = BatchWriter(storage)
            until(lambda: writer.write([draft(storage.tail().position)]) is not None and not woken.is_alive(), "woken")
        woken.join()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ahead=st.integers(1, 3000),
    readings=st.lists(
        st.tuples(st.just(0) | st.integers(1, 24), st.integers(1, 2000), st.sampled_from(("", "tail", "location"))),
        max_size=12,
    ),
)
def test_lines_are_the_same_in_whatever_order_they_are_read(
    many: tuple[PostgresLog, list[bytes]], monkeypatch: pytest.MonkeyPatch, ahead: int,
    readings: list[tuple[int, int, str]],
) -> None:  # fmt: skip
    """Position 0: where the reading before ended; so pages are asked for ahead, and used there and nowhere else."""
    log, lines = many
    monkeypatch.setattr(reader_module, "AHEAD_BYTES", ahead)
    with closing(log.reader()) as reader:
        following = 1
        for position, size, meanwhile in readings:
            start = min(position or following, len(lines))
            read = reader.read(start, size)
            count = read.count(b"\n")
            assert count > 0
            assert read == b"".join(lines[start - 1 : start - 1 + count])
            assert count == 1 or len(read) <= size
            following = start + count
            if meanwhile == "tail":
                assert reader.tail().position == len(lines)
            elif meanwhile:
                assert reader.location(start)[0].startswith("page ")
        assert b"".join(all_lines(reader, 1, 300)) == b"".join(lines)


def test_a_reader_goes_on_when_the_server_was_started_again(server: Server, log: PostgresLog) -> None:
    with closing(log.reader()) as reader:
        before = list(events(reader))
        server.kill()
        server.start()
        assert list(events(reader)) == before


def test_a_reader_of_a_standby_sees_what_was_acknowledged(tmp_path: Path) -> None:
    with cluster() as three:
        log = PostgresLog(three.a.new_log(), tmp_path)
        there = PostgresLog(three.b.address(name_of(log)), tmp_path)
        with log.lease("tests") as lease, closing(lease.open()) as storage:
            writer = BatchWriter(storage)
            writer.create(storage.log_id())
            first = writer.write([draft(1)])
            storage.settle()
            until(lambda: there.exists() and there.stat().newest is not None, "the standby has the log")
            with closing(there.reader()) as reader:
                assert reader.changes(first.position - 1, SECONDS)
                assert reader.tail() == first
                second = writer.write([draft(2), draft(3)])
                third = writer.write([draft(4)])  # which vouches for the one before
                number = third.position
                until(lambda: str(number) == three.b.sql(f"SELECT position FROM pm.log WHERE name = '{name_of(log)}'"),
                      "the standby shows the newest batch")
                assert reader.tail() == second, "nobody has said that the newest one was acknowledged"
                storage.settle()
                assert reader.changes(second.position, SECONDS)
                assert reader.tail() == third
            with pytest.raises((PmagentError, AssertionError)), there.lease("tests"):
                pass


def test_a_session_whose_statement_failed_in_a_pair_goes_on(server: Server) -> None:
    with closing(Session(f"host={server.folder} user=postgres dbname=postgres")) as session:
        good, bad = (b"SELECT 1", ()), (b"SELECT 1/0", ())
        for first, then in ((bad, good), (good, bad), (bad, bad)):
            with pytest.raises(Failed, match="division by zero"):
                session.ask_two(first, then)
            assert session.ask(b"SELECT 2") == [(2,)]
        assert session.ask_two(good, good) == ([(1,)], [(1,)])
