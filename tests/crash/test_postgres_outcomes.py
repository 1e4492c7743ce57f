"""A log in PostgreSQL whose answers are lost, wait, or come with a warning: each batch is in it once, or nobody was
told that it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.events.errors import Deposed, LogLocked, OutcomeUnknown
from pmagent.events.event import Tail
from pmagent.events.lease import SECOND
from pmagent.events.postgres import hold as hold_module
from pmagent.events.postgres import lease as lease_module
from pmagent.events.postgres import reader as reader_module
from pmagent.events.postgres import storage as storage_module
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.hold import Claim, Hold, Taken
from pmagent.events.postgres.storage import PostgresStorage
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import events
from tests.support.logs import BatchWriter, draft
from tests.support.postgres import BOTH, SECONDS, WRITER, Cluster, Proxy, cluster, ends_of_messages, until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%pm.append%'"


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """A primary and two standbys."""
    with cluster() as made:
        yield made


@pytest.fixture
def log(three: Cluster, tmp_path: Path) -> Iterator[PostgresLog]:
    """A log there."""
    yield PostgresLog(three.a.new_log(), tmp_path)
    three.b.resume()
    three.c.resume()
    three.a.configure(synchronous_standby_names=BOTH)
    three.a.reload()


class Waiting:
    """A batch that is appended in a thread."""

    def __init__(self, writer: BatchWriter, number: int, size: int = 20) -> None:
        self.error: BaseException | None = None
        self._writer, self._draft = writer, draft(number, size)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether it was answered."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Wait for the answer. Raises what it raised."""
        self._thread.join(SECONDS)
        assert self.is_over
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self._writer.write([self._draft])
        except BaseException as error:  # noqa: BLE001 - it is raised where the end is waited for
            self.error = error


def begun(storage: PostgresStorage) -> BatchWriter:
    """A writer of a new log, which has begun it."""
    writer = BatchWriter(storage)
    writer.create(storage.log_id())
    return writer


def check(log: PostgresLog, writer: BatchWriter, ids: list[str]) -> None:
    """The log is whole, and holds exactly these notes, each once, up to the acknowledged end."""
    assert log.verify(decode=True).ok
    reader = log.reader()
    assert [event.id for event in events(reader)][1:] == ids
    assert reader.tail() == writer.acknowledged[-1]
    reader.close()


def test_a_connection_that_is_cut_in_each_message_leaves_each_batch_once(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "TELL_SECONDS", float("inf"))  # no other connection carries anything
    direct = PostgresLog(three.a.new_log(), tmp_path)
    folder = three.a.folder.parent / "proxy"
    folder.mkdir()
    proxy = Proxy(three.a, folder)
    address = Address(f"postgresql:///postgres?host={folder}&user={WRITER}", direct.place.partition("#")[2])
    try:
        with PostgresLog(address, tmp_path).lease("tests") as lease:
            storage = lease.open()
            writer = begun(storage)
            writer.write([draft(1)])
            proxy.watch()
            writer.write([draft(2)])
            cuts = [
                (way, place)
                for way in (0, 1) for end in ends_of_messages(bytes(proxy.seen[way])) for place in (end - 1, end)
            ]
            assert len(cuts) > 20
            for number, (way, after) in enumerate(cuts, 2):
                proxy.watch()
                writer.write([draft(2 * number - 1)])  # a new connection has prepared its statements then
                proxy.arm(way, after)
                writer.write([draft(2 * number)])
                assert proxy.is_cut, f"{after} bytes went {'to the client' if way else 'to the server'}"
            storage.close()
    finally:
        proxy.close()
    check(direct, writer, [f"note-{number}" for number in range(1, 2 * len(cuts) + 3)])


@pytest.mark.parametrize("how", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_commit_that_is_ended_while_it_waits_for_a_standby_is_no_acknowledgement(
    three: Cluster, log: PostgresLog, how: str
) -> None:
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        three.b.pause()
        three.c.pause()
        waiting = Waiting(writer, 1)
        until(lambda: three.a.sql(WAITING) == "1", "the commit waits")
        three.a.sql(WAITING.replace("count(*)", f"{how}(pid)"))
        until(lambda: three.a.sql(WAITING.replace("pm.append", "pm.take")) == "1", "the log is taken again, and waits")
        name = log.place.partition("#")[2]
        assert three.a.sql(f"SELECT position FROM pm.log WHERE name = '{name}'") == "2", "others see it"
        assert not waiting.is_over, "and nobody was told that it is durable"
        three.b.resume()
        waiting.end()
        storage.close()
    check(log, writer, ["note-1"])


def test_a_batch_that_no_standby_has_is_seen_after_a_crash_and_acknowledged_only_with_one(
    three: Cluster, log: PostgresLog
) -> None:
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        three.b.pause()
        three.c.pause()
        waiting = Waiting(writer, 1)
        until(lambda: three.a.sql(WAITING) == "1", "the commit waits")
        three.a.kill()
        three.a.start()
        until(lambda: three.a.sql(WAITING.replace("pm.append", "pm.take")) == "1", "the log is taken again, and waits")
        name = log.place.partition("#")[2]
        assert three.a.sql(f"SELECT position FROM pm.log WHERE name = '{name}'") == "2", "others see it"
        assert not waiting.is_over, "and nobody was told that it is durable"
        three.b.resume()
        waiting.end()
        storage.close()
    check(log, writer, ["note-1"])


def test_standby_names_that_are_emptied_while_a_commit_waits_acknowledge_nothing(
    three: Cluster, log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "OUTAGE_SECONDS", 0.0)
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        three.b.pause()
        three.c.pause()
        waiting = Waiting(writer, 1)
        until(lambda: three.a.sql(WAITING) == "1", "the commit waits")
        three.a.configure(synchronous_standby_names="")
        three.a.reload()
        with pytest.raises(OutcomeUnknown, match="synchronous_standby_names"):
            waiting.end()
        with pytest.raises(OutcomeUnknown):
            storage.settle()


def test_without_standbys_nothing_is_acknowledged_and_with_one_again_it_goes_on(
    three: Cluster, log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "APPEND_SECONDS", 0.2)
    monkeypatch.setattr(hold_module, "TAKE_SECONDS", 0.2)
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        three.b.pause()
        three.c.pause()
        waiting = Waiting(writer, 1)
        until(lambda: int(three.a.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event IN ('SyncRep', 'tuple', "
                                      "'transactionid') AND query LIKE '%pm.take%'")) >= 2, "it is tried again")
        assert not waiting.is_over
        three.c.resume()
        waiting.end()
        writer.write([draft(2)])
        storage.close()
    check(log, writer, ["note-1", "note-2"])


def test_of_takers_that_race_for_one_epoch_one_wins(log: PostgresLog) -> None:
    with log.lease("tests") as lease:
        storage = lease.open()
        begun(storage)
        storage.close()
    epoch = log.age()[0]
    address = Address(*log.place.split("#"))
    won, lost = list[Hold](), list[Taken]()
    gate = threading.Barrier(6)

    def race(number: int) -> None:
        gate.wait(SECONDS)
        try:
            claim = Claim(f"token-{number}", "", f"pid {number} on x, tests", "", replicated=True)
            hold = Hold(address, claim)
            hold.take(epoch)
            won.append(hold)
        except Taken as taken:
            lost.append(taken)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert (len(won), len(lost)) == (1, 5)
    assert {taken.was.token for taken in lost} == {won[0].claim.token}
    assert log.age()[0] == epoch + 1
    won[0].close()


def test_a_holder_whose_log_is_taken_over_acknowledges_nothing_more(log: PostgresLog) -> None:
    with log.lease("tests") as first:
        old = first.open()
        writer = begun(old)
        with pytest.raises(LogLocked), log.lease("tests"):
            pass
        with log.lease("others", seize=True) as second:
            new = second.open()
            with pytest.raises(Deposed, match="others"):  # although the log ends where it was left
                writer.write([draft(2)])
            after = BatchWriter(new)
            after.write([draft(1)])
            with pytest.raises(Deposed):
                old.append_batch(old.tail(), [], Tail())
            old.close()
            after.write([draft(3)])
            new.close()
    check(log, after, ["note-1", "note-3"])


def test_a_holder_that_is_idle_learns_that_its_log_was_taken_over(log: PostgresLog) -> None:
    with log.lease("tests") as first:
        old = first.open()
        begun(old)
        old.settle()
        with log.lease("others", seize=True), pytest.raises(Deposed):
            old.settle()
        with pytest.raises(Deposed):
            old.append_batch(old.tail(), [], Tail())


def test_a_holder_that_lost_its_session_keeps_its_log_while_it_renews(
    three: Cluster, log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "WATCH_SECONDS", 0.05)
    over = threading.Event()
    with log.lease("tests") as lease:
        storage = lease.open()
        writer = begun(storage)
        name = log.place.partition("#")[2]
        locks = f"pg_locks WHERE classid = 28781 AND objid = (SELECT log_no FROM pm.log WHERE name = '{name}')"
        three.a.sql(f"SELECT pg_terminate_backend(pid) FROM {locks}")
        until(lambda: three.a.sql(f"SELECT count(*) FROM {locks}") == "0", "its lock is gone")

        def renew() -> None:
            while not over.is_set():
                storage.settle()

        renewing = threading.Thread(target=renew)
        renewing.start()
        try:
            with pytest.raises(LogLocked), log.lease("others"):
                pass
        finally:
            over.set()
            renewing.join(SECONDS)
        writer.write([draft(1)])
        assert log.holder().live, "and it has the lock again"
        storage.close()
    check(log, writer, ["note-1"])


def test_a_holder_that_is_gone_without_a_word_is_waited_for_and_then_followed(
    log: PostgresLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.lease("tests") as lease:
        storage = lease.open()
        begun(storage)
        storage.close()
    address = Address(*log.place.split("#"))
    hold = Hold(address, Claim("token", "elsewhere", "pid 7 on elsewhere, daemon", "", replicated=True))
    hold.take(log.age()[0])
    hold.close()
    asked: list[float] = []
    monkeypatch.setattr(lease_module, "sleep", asked.append)
    monkeypatch.setattr(lease_module, "boottime", lambda: 1 + int(sum(asked) * SECOND))
    with log.lease("others") as lease:
        assert log.holder().role == "others"
        taken = lease.open().taken_over
    assert sum(asked) >= 30
    assert taken is not None
    assert (taken.why, taken.previous) == ("expired", "pid 7 on elsewhere, daemon")


def test_an_epoch_that_another_one_holds_in_another_history_is_not_renewed(three: Cluster, log: PostgresLog) -> None:
    """A promotion that lost the take-over of one holder, and then saw one of another: both hold an epoch of that
    number, and the first one must not take the other's lease for its own."""
    with log.lease("tests") as lease:
        storage = lease.open()
        begun(storage)
        storage.close()
    address, expected = Address(*log.place.split("#")), log.age()[0]
    hold = Hold(address, Claim("token", "elsewhere", "pid 7 on elsewhere, daemon", "", replicated=True))
    hold.take(expected)
    hold.close()
    assert hold.renew(), "on another connection"
    three.a.sql(f"UPDATE pm.log SET token = 'of another one' WHERE name = '{address.log}'")
    before = three.a.sql(f"SELECT renewals, released FROM pm.log WHERE name = '{address.log}'")
    assert not hold.renew()
    hold.close()
    assert not hold.renew(released=True), "on another connection"
    assert three.a.sql(f"SELECT renewals, released FROM pm.log WHERE name = '{address.log}'") == before
    assert hold.session is not None
    locks = hold.session.ask(b"SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
    assert not locks, "nobody takes its session for the other one's"
    hold.close()
