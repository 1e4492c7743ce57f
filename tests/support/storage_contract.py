"""The storage contracts, as tests: what every implementation of ``pmagent.events.storage.Storage``, and of the
``pmagent.events.store.LogStore`` that opens it, must do.

To run it against another implementation, make a test module with a subclass that says how a storage is made:

    class TestMine(StorageContract):
        @pytest.fixture
        def make(self) -> MakeStorage:      # each call opens what the last one left; the first finds nothing
            return lambda: MyStorage(...)

``persistent = False`` leaves out what is about opening again. ``StoreContract`` is used alike: its ``make`` gives the
store of another log each time, and ``again`` a store of the same log for another process. ``BlobsContract`` wants two
fixtures: ``make`` gives the same blobs each time, as a process sees them that has seen none of them; ``spoil`` changes
the content of one where it lies.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

import pytest

from pmagent.events.errors import BadEvent, CorruptLog, LogLocked, NotFound, TailMoved
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event, Tail, time_after
from pmagent.events.line import ChainChecker, seal
from pmagent.events.log import now
from pmagent.events.reader import CAUGHT_UP, Follower, Progress, Reader, event_at, events, runs
from pmagent.events.storage import Blobs, Storage
from pmagent.events.store import LogStore
from tests.support.logs import LOG_ID, BatchWriter, draft, moment

MakeStorage = Callable[[], Storage]
MakeStore = Callable[[], LogStore]
MakeBlobs = Callable[[], Blobs]
Spoil = Callable[[str], None]
SECONDS = 60.0
"""Nothing here waits so long."""


class StorageContract:
    """Inherit, name the class ``Test…``, and give a fixture ``make``."""

    persistent = True

    def filled(self, make: MakeStorage, batches: tuple[int, ...] = (1, 2, 3), size: int = 20) -> BatchWriter:
        """A storage with log.created and so many events in each batch."""
        writer = BatchWriter(make())
        writer.create(LOG_ID)
        for count in batches:
            start = writer.storage.tail().position
            writer.write([draft(start + n + 1, size) for n in range(count)])
        return writer

    def test_a_new_storage_is_empty(self, make: MakeStorage) -> None:
        storage = make()
        assert storage.tail() == Tail()
        assert storage.read(1) == b""
        storage.settle()
        storage.close()

    def test_the_tail_is_that_of_the_last_batch(self, make: MakeStorage) -> None:
        writer = self.filled(make)
        assert writer.storage.tail() == writer.acknowledged[-1]
        assert (writer.storage.tail().position, writer.storage.tail().batch) == (7, 4)
        writer.storage.close()

    def test_lines_are_read_as_they_were_appended(self, make: MakeStorage) -> None:
        storage = make()
        tail = Tail()
        lines: list[bytes] = []
        for batch, positions in enumerate([(1,), (2, 3), (4, 5, 6)], 1):
            made = [_event(position) for position in positions]
            sealed, sums = seal(made, batch, tail)
            after = Tail(made[-1].position, batch, made[-1].time, sums[-1])
            storage.append_batch(tail, sealed, after)
            lines += sealed
            tail = after
            assert storage.tail() == tail
        for position in range(1, 7):
            rest = b"".join(lines[position - 1 :])
            got = storage.read(position)
            assert got
            assert rest.startswith(got), "a run may end early, at a line's end"
            assert got.endswith(b"\n")
            assert storage.read(position, 1) == lines[position - 1], "one line at least, however long"
            assert storage.read(position, len(lines[position - 1])) == lines[position - 1]
        storage.close()

    def test_runs_join_to_the_whole_log_whatever_their_size(self, make: MakeStorage) -> None:
        storage = self.filled(make, (1, 4, 2, 7, 1)).storage
        whole = b""
        while got := storage.read(whole.count(b"\n") + 1):
            whole += got
        assert ChainChecker(Tail()).check(whole) is None
        for bytes_max in (1, 200, 500, 1001, 1 << 20):
            joined = b""
            while got := storage.read(joined.count(b"\n") + 1, bytes_max):
                assert len(got) <= bytes_max or got.count(b"\n") == 1
                joined += got
            assert joined == whole
        storage.close()

    @pytest.mark.parametrize("beyond", [1, 2, 100])
    def test_there_is_nothing_behind_the_tail(self, make: MakeStorage, beyond: int) -> None:
        storage = self.filled(make).storage
        assert storage.read(storage.tail().position + beyond) == b""
        storage.close()

    @pytest.mark.parametrize("position", [0, -1])
    def test_positions_start_at_one(self, make: MakeStorage, position: int) -> None:
        storage = self.filled(make).storage
        with pytest.raises(ValueError, match="start at 1"):
            storage.read(position)
        storage.close()

    def test_an_append_behind_another_tail_is_refused_and_writes_nothing(self, make: MakeStorage) -> None:
        writer = self.filled(make)
        storage, tail = writer.storage, writer.storage.tail()
        lines, sums = seal([_event(8)], 5, tail)
        others = (Tail(7, 4, tail.time, "0" * 64), Tail(8, 5, tail.time, tail.sum))
        for wrong in (*writer.acknowledged[:-1], *others):
            with pytest.raises(TailMoved):
                storage.append_batch(wrong, lines, Tail(8, 5, moment(8), sums[0]))
        assert storage.tail() == tail
        assert storage.read(8) == b""
        storage.append_batch(tail, lines, Tail(8, 5, moment(8), sums[0]))
        assert storage.read(8) == lines[0]
        storage.close()

    @pytest.mark.parametrize("wrong", ["a gap", "none", "another sum", "another chain", "a line too many", "a batch"])
    def test_lines_that_do_not_follow_are_refused_and_nothing_is_written(self, make: MakeStorage, wrong: str) -> None:
        writer = self.filled(make)
        storage, tail = writer.storage, writer.storage.tail()
        lines, (sum_,) = seal([_event(8)], 5, tail)
        after = Tail(8, 5, moment(8), sum_)
        (gap,), (of_gap,) = seal([_event(9)], 5, Tail(8, 4, tail.time, tail.sum))
        (other,), (of_other,) = seal([_event(8)], 5, Tail(7, 4, tail.time, "1" * 64))
        given: list[bytes]
        given, end = {
            "a gap": ([gap], Tail(9, 5, moment(9), of_gap)), "none": ([], after),
            "another sum": (lines, Tail(8, 5, moment(8), "0" * 64)),
            "another chain": ([other], Tail(8, 5, moment(8), of_other)),
            "a line too many": ([*lines, *lines], after), "a batch": (lines, Tail(8, 6, moment(8), sum_)),
        }[wrong]  # fmt: skip
        with pytest.raises(BadEvent):
            storage.append_batch(tail, given, end)
        assert (storage.tail(), storage.read(8)) == (tail, b"")
        storage.append_batch(tail, lines, after)
        assert storage.read(8) == lines[0]
        storage.close()

    def test_a_line_of_the_largest_size_is_kept(self, make: MakeStorage) -> None:
        writer = self.filled(make)
        raw = b'"%s"' % (b"x" * (DATA_BYTES_MAX - 2))
        writer.write([Draft("test.large", None, raw, "large", "source"), draft(9)])
        assert bytes(event_at(writer.storage, 8).data) == raw
        assert event_at(writer.storage, 9).id == "note-9"
        assert writer.storage.read(8, 1).count(b"\n") == 1
        writer.storage.close()

    def test_readers_get_checked_events_from_any_position(self, make: MakeStorage) -> None:
        storage = self.filled(make, (1, 4, 2, 7, 1)).storage
        everything = list(events(storage))
        assert [event.position for event in everything] == list(range(1, 17))
        for start in range(1, 18):
            assert list(events(storage, start)) == everything[start - 1 :]
            for until in (start - 1, start, start + 3, 16, 99):
                assert list(events(storage, start, until)) == everything[start - 1 : until]
        assert all(run for run in runs(storage, 3, 2))
        storage.close()

    def test_a_reader_that_asks_behind_the_tail_waits_for_that_position(self, make: MakeStorage) -> None:
        writer = self.filled(make, (1,))
        reader = Reader(writer.storage, 5)
        assert reader.next_run() == []
        writer.write([draft(3)])
        assert reader.next_run() == []
        writer.write([draft(4)])
        assert reader.next_run() == []
        writer.write([draft(5), draft(6)])
        assert [event.position for event in reader.next_run()] == [5, 6]
        assert reader.tail == writer.storage.tail()
        writer.storage.close()

    def test_a_follower_catches_up_says_so_once_and_stays_live(self, make: MakeStorage) -> None:
        writer = self.filled(make, (1, 2))
        follower = Follower(writer.storage, 2, chunk_bytes=300)
        found: list[object] = []
        for number in range(30):
            while (said := follower.poll()) is not None:
                found += [said] if isinstance(said, Progress) else [event.position for event in said]
            assert follower.position == writer.storage.tail().position + 1
            writer.write([draft(100 + number)])
        assert found == [2, 3, 4, CAUGHT_UP, *range(5, 34)]
        writer.storage.close()

    def test_waiting_for_news_ends_with_them_or_when_the_time_is_up(self, make: MakeStorage) -> None:
        writer = self.filled(make)
        storage, end = writer.storage, writer.storage.tail().position
        assert storage.changes(end - 1, 0)
        assert not storage.changes(end, 0)
        thread = threading.Thread(target=writer.write, args=([draft(end + 1)],))
        thread.start()
        assert storage.changes(end, SECONDS)
        thread.join()
        assert storage.tail().position == end + 1
        storage.close()

    def test_closing_twice_is_harmless(self, make: MakeStorage) -> None:
        storage = self.filled(make).storage
        storage.close()
        storage.close()

    def test_everything_is_there_when_it_is_opened_again(self, make: MakeStorage) -> None:
        if not self.persistent:
            pytest.skip("keeps nothing")
        before = self.filled(make, (1, 4, 2))
        whole = list(events(before.storage))
        before.storage.close()
        for more in (1, 2):
            after = BatchWriter(make())
            assert after.storage.tail() == Tail(whole[-1].position, whole[-1].batch, whole[-1].time, whole[-1].sum)
            assert list(events(after.storage)) == whole
            after.write([draft(100 + n) for n in range(more)])
            whole = list(events(after.storage))
            after.storage.close()
        assert len(whole) == 11


class StoreContract:
    """Inherit, name the class ``Test…``, and give a fixture ``make``."""

    def again(self, store: LogStore) -> LogStore:
        """A store of the same log."""
        return store

    def written(self, store: LogStore, batches: tuple[int, ...] = (1, 2, 3)) -> list[Tail]:
        """The tails after each batch that was written into a new log."""
        with store.lease("tests") as lease, closing(lease.open()) as storage:
            writer = BatchWriter(storage)
            writer.create(storage.log_id())
            for number in batches:
                start = storage.tail().position
                writer.write([draft(start + n + 1, 200) for n in range(number)])
        return writer.acknowledged[1:]

    def test_without_a_log_there_is_nothing_to_read(self, make: MakeStore) -> None:
        store = make()
        assert not store.exists()
        assert not store.holder().live
        assert (store.stat().newest, store.stat().parts, store.size()) == (None, [], (0, 0))
        for ask in (store.reader, store.verify):
            with pytest.raises(NotFound):
                ask()

    def test_a_reader_has_what_the_writer_wrote_and_both_know_the_log(self, make: MakeStore) -> None:
        store = make()
        with store.lease("tests") as lease, closing(lease.open()) as storage:
            log_id = storage.log_id()
            assert (len(log_id), storage.recovered) == (32, None)
            writer = BatchWriter(storage)
            writer.create(log_id)
            other = self.again(store)
            with closing(other.reader()) as reader:
                writer.write([draft(2), draft(3)])
                assert reader.changes(1, SECONDS)
                assert (reader.log_id(), reader.tail()) == (log_id, storage.tail())
                assert reader.read(1) == storage.read(1)
        with self.again(store).lease("tests") as lease, closing(lease.open()) as storage:
            assert (storage.log_id(), storage.tail().position, storage.recovered) == (log_id, 3, None)
        assert other.exists()

    def test_one_writer_holds_the_lease_and_says_who_it_is(self, make: MakeStore) -> None:
        store, begun = make(), now()
        other = self.again(store)
        with store.lease("orchestra.run"):
            holder = other.holder()
            assert (holder.live, holder.pid, holder.role) == (True, os.getpid(), "orchestra.run")
            assert time_after(begun, -60) <= holder.since <= now(), "file systems have coarser clocks"
            with pytest.raises(LogLocked) as caught, other.lease("daemon"):
                pass
            assert caught.value.holder == holder.note
        assert not other.holder().live
        assert other.holder().role == "orchestra.run", "who had it last is known"
        with pytest.raises(ZeroDivisionError), other.lease("daemon"):
            raise ZeroDivisionError
        with store.lease("daemon"):
            assert other.holder().role == "daemon"

    def test_the_facts_of_a_store_are_those_of_the_written_log(self, make: MakeStore) -> None:
        store, told = make(), list[int]()
        tails = self.written(store)
        found = store.verify(decode=True, progress=told.append)
        assert (found.ok, found.finding, found.events) == (True, None, 7)
        assert found.tail == found.durable == tails[-1]
        assert told[-1] == found.bytes == store.size().lines
        standing = store.stat()
        assert (standing.log_id, standing.newest, standing.trouble) == (found.log_id, tails[-1], "")
        assert standing.newest in standing.ends
        edges = [edge for part in reversed(standing.parts) for edge in (part.first, part.last)]
        assert (edges[0], edges[-1], standing.bytes) == (1, 7, found.bytes)
        assert all(last + 1 == first for last, first in zip(edges[1::2], edges[2::2], strict=False))

    def test_the_sum_at_each_position_can_be_compared_with_what_was_known(self, make: MakeStore) -> None:
        store = make()
        self.written(store)
        with closing(store.reader()) as reader:
            for event in events(reader):
                assert store.written(event.position) == (7, event.sum)
        assert store.written(8) == store.written(0) == (7, "")

    def test_the_identity_is_the_place_s_and_no_other_log_has_it(self, make: MakeStore) -> None:
        store, other = make(), make()
        self.written(other)
        with store.lease("tests") as lease, closing(lease.open()):
            first = store.identity()
        self.written(self.again(store))
        assert self.again(store).identity() == first
        assert first.owner == os.getuid()
        assert other.identity().mark != first.mark

    def test_blobs_lie_beside_the_log(self, make: MakeStore) -> None:
        store = make()
        with store.lease("tests"):
            name = store.blobs().put(b"some content")
            stream = store.blobs().writer()
            for piece in (b"more ", b"content"):
                stream.append(piece)
            assert stream.finish() == (sha256(b"more content").hexdigest(), 12)
            left = store.blobs().writer()
            left.append(b"left behind")
            assert store.blobs().clear_unfinished() == 1
            left.abandon()
        blobs = self.again(store).blobs()
        assert (blobs.get(name), blobs.check(name)) == (b"some content", 12)
        with closing(blobs.reader(name)) as reader:
            assert b"".join(reader.pieces(5)) == b"some content"
        with pytest.raises(NotFound):
            blobs.get("0" * 64)


SIZES = (0, 1, 256 * 1024, 256 * 1024 + 1, (1 << 20) + 7)
"""At and around the sizes at which a store begins another piece."""


class BlobsContract:
    """Inherit, name the class ``Test…``, and give the fixtures ``make`` and ``spoil``."""

    def test_what_one_process_puts_every_other_reads_and_checks(self, make: MakeBlobs) -> None:
        contents = [os.urandom(size) for size in SIZES]
        first = make()
        names = [first.put(content) for content in contents]
        assert names == [sha256(content).hexdigest() for content in contents]
        other = make()
        for name, content in zip(names, contents, strict=True):
            assert make().check(name) == len(content)
            assert other.get(name) == make().get(name) == content
            with closing(make().reader(name)) as reader:
                assert (reader.size, b"".join(reader.pieces(70_000))) == (len(content), content)

    def test_what_comes_piece_by_piece_is_found_when_it_is_whole(self, make: MakeBlobs) -> None:
        content = os.urandom(600_000)
        name = sha256(content).hexdigest()
        writer = make().writer()
        for start in range(0, len(content), 50_000):
            writer.append(content[start : start + 50_000])
        with pytest.raises(NotFound):
            make().check(name)
        assert writer.size == len(content)
        assert writer.finish() == (name, len(content))
        writer.abandon()
        assert make().get(name) == content
        left = make().writer()
        left.append(b"left")
        left.abandon()
        with pytest.raises(NotFound):
            make().get(sha256(b"left").hexdigest())

    def test_equal_content_is_one_blob_whoever_puts_it_when(self, make: MakeBlobs) -> None:
        content = os.urandom(300_000)
        stores = [make() for _ in range(4)]
        names: list[str] = []
        threads = [threading.Thread(target=lambda store=store: names.append(store.put(content))) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert names == [make().put(content)] * 4
        assert make().check(names[0]) == len(content)
        assert make().remove([names[0]]) == (1, len(content))
        with pytest.raises(NotFound):
            make().check(names[0])

    def test_what_is_not_there_is_not_found(self, make: MakeBlobs) -> None:
        blobs = make()
        for name in ("0" * 64, sha256(b"never").hexdigest()):
            for look in (blobs.get, blobs.check, blobs.reader):
                with pytest.raises(NotFound) as caught:
                    look(name)
                assert name in str(caught.value)

    def test_rotten_content_is_named_and_never_handed_out(self, make: MakeBlobs, spoil: Spoil) -> None:
        for size in (1000, 600_000):
            name = make().put(os.urandom(size))
            spoil(name)
            for look in (make().check, make().get):
                with pytest.raises(CorruptLog) as caught:
                    look(name)
                assert name in str(caught.value)
            with pytest.raises(CorruptLog), closing(make().reader(name)) as reader:  # before its last piece
                assert sum(map(len, reader.pieces(1 << 20))) == 0

    def test_what_is_removed_is_gone_and_can_be_put_again(self, make: MakeBlobs) -> None:
        blobs = make()
        names = [blobs.put(b"%d" % number * 100_000) for number in range(4)]
        assert blobs.remove([*names[:2], "0" * 64]) == (2, 200_000)
        assert blobs.remove(names[:2]) == (0, 0)
        for name in names[:2]:
            for look in (make().get, blobs.get, blobs.check):
                with pytest.raises(NotFound):
                    look(name)
        assert blobs.put(b"0" * 100_000) == names[0]
        assert make().check(names[0]) == make().check(names[2]) == 100_000


def _event(position: int) -> Event:
    made = draft(position)
    return Event(position, moment(position), made.id, "fact", "source", made.type, "", 0, None, made.raw)
