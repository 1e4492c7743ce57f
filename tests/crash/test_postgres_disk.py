"""A log in PostgreSQL where a disk is full: nothing acknowledged is lost, and work goes on when there is room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from pmagent.events.errors import DiskFull
from pmagent.events.postgres import reader as reader_module
from pmagent.events.postgres.store import PostgresLog
from tests.crash.test_postgres_outcomes import WAITING, Waiting, begun, check
from tests.support.logs import draft
from tests.support.postgres import Cluster, Server, SmallDisk, servers, until


class Full(Cluster):
    """A cluster on small disks."""

    def __init__(self, folder: Path) -> None:
        self.disks = {name: SmallDisk(folder / name / "data") for name in "abc"}
        super().__init__(folder)
        self.a.sql("ALTER SYSTEM SET wal_keep_size = '256MB'")  # a standby that was down for a while can follow again
        self.a.reload()

    def fill(self, *names: str) -> None:
        """Leave no room on the disks of these servers."""
        for name in names:
            self.disks[name].fill()

    def make_room(self, *names: str) -> None:
        """Leave room again, and start the servers that gave up."""
        for name in names:
            self.disks[name].empty()
            server: Server = getattr(self, name)
            server.stop()
            server.start()


def turn_over(primary: Server, full: Server) -> None:
    """Begin new segments of the primary's write-ahead log until ``full`` finds no room for one."""

    def has_found_out() -> bool:
        with suppress(AssertionError):  # it may end meanwhile
            primary.sql("SET synchronous_commit = off; SELECT pg_logical_emit_message(true, 'a test', 'x')")
            primary.sql("SELECT pg_switch_wal()")
        return has_no_room(full)

    until(has_found_out, "the server finds no room")


def has_no_room(server: Server) -> bool:
    """Whether it has found out."""
    return "No space left on device" in (server.folder / "log").read_text("utf-8", "replace")


@pytest.fixture(scope="module")
def three() -> Iterator[Full]:
    """A primary and two standbys."""
    with servers() as folder:
        made = Full(folder)
        try:
            yield made
        finally:
            made.stop()
            for disk in made.disks.values():
                disk.close()


@pytest.mark.parametrize("where", ["table", "write-ahead log"])
def test_a_batch_that_finds_the_primarys_disk_full_is_in_the_log_once_there_is_room(
    three: Full, tmp_path: Path, where: str
) -> None:
    log = PostgresLog(three.a.new_log(), tmp_path)
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = begun(storage)
        writer.write([draft(1)])
        (three.a.folder / "log").write_text("")
        three.fill("a")
        if where == "table":
            waiting = Waiting(writer, 2, size=1_000_000)
        else:
            waiting = Waiting(writer, 2)
            turn_over(three.a, three.a)
        until(lambda: has_no_room(three.a), "the server finds no room")
        three.make_room("a")
        waiting.end()
        writer.write([draft(3)])
    check(log, writer, ["note-1", "note-2", "note-3"])


def test_a_disk_that_stays_full_ends_the_writer_with_its_name(
    three: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = PostgresLog(three.a.new_log(), tmp_path)
    monkeypatch.setattr(reader_module, "OUTAGE_SECONDS", 0.5)
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        three.fill("a")
        with pytest.raises(DiskFull) as caught:
            writer.write([draft(1, 1_000_000)])
        assert caught.value.exit_code == 9
        storage.close()
    three.make_room("a")
    assert log.verify(decode=True).ok


def test_a_full_disk_of_one_standby_stops_nobody_and_of_both_lets_batches_wait(three: Full, tmp_path: Path) -> None:
    log = PostgresLog(three.a.new_log(), tmp_path)
    with log.lease("tests") as lease, closing(lease.open()) as storage:
        writer = begun(storage)
        for server in (three.b, three.c):
            (server.folder / "log").write_text("")
        three.fill("b")
        turn_over(three.a, three.b)
        writer.write([draft(1)])
        three.fill("c")
        waiting = Waiting(writer, 2)
        turn_over(three.a, three.c)
        third = Waiting(writer, 3) if waiting.is_over else waiting
        until(lambda: three.a.sql(WAITING) != "0", "a commit waits")
        assert not third.is_over
        three.make_room("b")
        third.end()
        three.make_room("c")
    check(log, writer, ["note-1", "note-2"] if third is waiting else ["note-1", "note-2", "note-3"])
