"""A log that is checked ahead, in a fork, is read as it is read by one process, whatever is wrong with it."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events import ahead
from pmagent.events.ahead import long_runs, may_fork
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog
from pmagent.events.event import StoredEvent
from pmagent.events.reader import Reader, runs
from pmagent.events.segments import SegmentReader, segment_firsts, segment_name
from tests.support.effort import examples
from tests.support.logs import LOG_ID, BatchWriter, draft, open_segments
from tests.support.memory_disk import MemoryDisk

EVENTS = 121
Found = tuple[list[StoredEvent], object]


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The forks made; there is a processor for them, and no way is too short."""
    made: list[int] = []
    fork = os.fork

    def noted() -> int:
        child = fork()
        made.append(child)
        return child

    monkeypatch.setattr(os, "fork", noted)
    monkeypatch.setattr(ahead, "AHEAD_EVENTS_MIN", 1)
    monkeypatch.setattr(ahead, "may_fork", lambda: True)
    yield made
    assert not any(os.path.exists(f"/proc/{child}") for child in made), "each is gone"


def written(folder: str) -> None:
    """A log of several segments and batches."""
    storage = open_segments(RealDisk(), 6_000, folder=folder)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    for first in range(1, EVENTS, 8):
        writer.write([draft(first + n) for n in range(8)])
    storage.close()


def found(folder: str, read: Callable[..., Iterator[Sequence[StoredEvent]]], *way: int) -> Found:
    """The events that are read, and the place of the error that ended it; its words depend on what was read before."""
    events: list[StoredEvent] = []
    with closing(SegmentReader(RealDisk(), folder)) as storage:
        try:
            for run in read(storage, *way):
                events.extend(run)
        except CorruptLog as error:
            return events, (error.file, error.offset, error.position)
    return events, None


def is_the_same(folder: str, *way: int) -> None:
    """Both ways of reading find the same."""
    assert found(folder, long_runs, *way) == found(folder, runs, *way)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, EVENTS), st.integers(0, EVENTS), st.sampled_from([1, 700, 1 << 18]))
def test_every_part_is_read_as_by_one_process(first: int, count: int, chunk: int) -> None:
    with TemporaryDirectory() as folder:
        written(folder)
        is_the_same(folder, first, min(first + count, EVENTS), chunk)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_flipped_bit_is_found_where_one_process_finds_it(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        written(folder)
        name = segment_name(data.draw(st.sampled_from(segment_firsts(RealDisk(), folder))))
        content = bytearray(Path(folder, name).read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        Path(folder, name).chmod(0o600)
        Path(folder, name).write_bytes(content)
        events, error = found(folder, long_runs, 1, EVENTS, 700)
        assert error is not None
        assert (events, error) == found(folder, runs, 1, EVENTS, 700)


@pytest.mark.parametrize("lived", [0, 1, 3])
def test_a_fork_that_dies_is_missed_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: list[int], lived: int
) -> None:
    parent = os.getpid()

    class Mortal(Reader):
        left = lived

        def next_lines(self, chunk: bytes = b"") -> bytes:
            if os.getpid() != parent:
                if not self.left:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.left -= 1
            return super().next_lines(chunk)

    monkeypatch.setattr(ahead, "Reader", Mortal)
    written(str(tmp_path))
    is_the_same(str(tmp_path), 1, EVENTS, 700)
    assert len(forks) == 1


def test_lines_that_come_cut_off_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(str(tmp_path))

    class Cut(Reader):
        def next_lines(self, chunk: bytes = b"") -> bytes:
            return super().next_lines(chunk)[:-9]

    monkeypatch.setattr(ahead, "Reader", Cut)
    is_the_same(str(tmp_path), 1, EVENTS, 700)


def test_who_stops_reading_ends_the_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: list[int]
) -> None:
    written(str(tmp_path))
    wait = os.waitpid

    def within_a_minute(child: int, options: int) -> tuple[int, int]:
        descriptor = os.pidfd_open(child)
        try:
            if not select.select([descriptor], [], [], 60.0)[0]:
                os.kill(child, signal.SIGKILL)
                pytest.fail("it waits for somebody who reads")
        finally:
            os.close(descriptor)
        return wait(child, options)

    monkeypatch.setattr(os, "waitpid", within_a_minute)
    monkeypatch.setattr(ahead, "_PIPE_BYTES", 4096)  # of which it has more to say
    with closing(SegmentReader(RealDisk(), str(tmp_path))) as storage, closing(long_runs(storage, 1, None, 1)) as read:
        assert next(iter(read))[0].position == 1
        assert os.path.exists(f"/proc/{forks[0]}")


def test_ended_children_that_the_kernel_keeps_not_are_not_asked_for(tmp_path: Path, forks: list[int]) -> None:
    written(str(tmp_path))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        is_the_same(str(tmp_path), 1, EVENTS, 700)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert len(forks) == 1


def test_without_a_process_to_be_had_one_reads_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", none)
    written(str(tmp_path))
    is_the_same(str(tmp_path), 1, EVENTS, 700)


def test_a_log_that_is_in_no_file_is_read_by_one_process(forks: list[int]) -> None:
    storage = open_segments(MemoryDisk())
    BatchWriter(storage).create(LOG_ID)
    BatchWriter(storage).write([draft(n) for n in range(5)])
    assert [event.position for run in long_runs(storage) for event in run] == [1, 2, 3, 4, 5, 6]
    assert not forks


def test_no_process_is_copied_that_has_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    assert not may_fork()
    go_on.set()
    thread.join()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert may_fork()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not may_fork()
