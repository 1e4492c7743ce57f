"""Readers and followers: from any position, across rolls, in this process and in another, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Draft, StoredEvent, Tail
from pmagent.events.reader import CAUGHT_UP, Follower, Progress, Reader, event_at
from pmagent.events.reader import events as read_events
from pmagent.events.segments import SegmentReader, line_start, segment_firsts
from tests.support.cases import each
from tests.support.effort import examples, rounds
from tests.support.logs import (
    FOLDER,
    HEAD_PATH,
    LOG_ID,
    BatchWriter,
    draft,
    head_bytes,
    lines_of,
    open_segments,
    path,
    write_log,
)
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage

ROOT = Path(__file__).resolve().parents[3]
BATCHES = rounds(3000, 500)


def sized(number: int, size: int) -> Draft:
    """A fact whose data has this size."""
    return Draft("test.noted", None, b'"%s"' % (b"x" * size), f"s{number}", "source")


@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.lists(st.sampled_from([2, 50, 900, 30_000, 70_000, 1_000_000]), min_size=1, max_size=14),
    segment_bytes=st.sampled_from([1, 100_000, 1 << 26]), chunk=st.sampled_from([1, 5000, 1 << 20]),
)
def test_any_position_is_found_whatever_the_lines_sizes(sizes: list[int], segment_bytes: int, chunk: int) -> None:
    disk = MemoryDisk()
    writer = BatchWriter(open_segments(disk, segment_bytes))
    writer.create(LOG_ID)
    for number, size in enumerate(sizes):
        writer.write([sized(number, size)])
    for position in range(1, len(sizes) + 2):
        reader = SegmentReader(disk, FOLDER)  # a new one: it knows of no place where it read before
        first, offset = reader.locate(position)
        assert disk.read(path(first))[offset:].startswith(b'{"position":%d,' % position)
        got = reader.read(position, chunk)
        assert disk.read(path(first))[offset:].startswith(got)
        assert got.endswith(b"\n")
        reader.close()
    writer.storage.close()
    assert disk.open_files == 0


@each("tail", [b"", b'{"position":9', bytes(200_000), b"garbage" * 30_000, b"\n" * 100])
def test_what_is_behind_the_durable_end_never_disturbs_a_reader(tail: bytes) -> None:
    disk = MemoryDisk()
    writer = BatchWriter(open_segments(disk, 1 << 26))
    writer.create(LOG_ID)
    for number in range(7):
        writer.write([sized(number, 30_000)])
    writer.storage.close()
    disk.put(path(1), disk.read(path(1)) + tail)
    for position in range(1, 9):
        reader = SegmentReader(disk, FOLDER)
        assert event_at(reader, position).position == position
        assert reader.read(9) == b""
        reader.close()


def test_a_line_that_claims_another_position_leads_nobody_away_from_the_others(disk: MemoryDisk) -> None:
    write_log(disk, [1] * 300, 1 << 26, size=700)
    line = lines_of(disk)[149]
    data = disk.contents[path(1)].data
    start = line.start + len(b'{"position":')
    for claim in (b"001", b"151", b"999", b"xyz"):
        data[start : start + 3] = claim
        for position in (1, 30, 75, 100, 149, 151, 200, 301):
            reader = SegmentReader(disk, FOLDER)
            _, offset = reader.locate(position)
            assert offset == lines_of(disk)[position - 1].start
            reader.close()
        reader = SegmentReader(disk, FOLDER)
        with pytest.raises(CorruptLog) as caught:
            event_at(reader, 150)
        assert (caught.value.offset, caught.value.position) == (line.start, 150)
        reader.close()


def test_one_event_is_read_without_those_behind_it(disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(disk, [1] * 30, 1 << 26, size=700)
    reader, read = SegmentReader(disk, FOLDER), list[bytes]()

    def noted(position: int, bytes_max: int) -> bytes:
        read.append(SegmentReader.read(reader, position, bytes_max))
        return read[-1]

    monkeypatch.setattr(reader, "read", noted)
    assert event_at(reader, 12).position == 12
    assert [line_start(chunk) for chunk in read] == [(11, 11), (12, 12)]
    assert [chunk.count(b"\n") for chunk in read] == [1, 1]
    reader.close()


@each("segment_bytes", [1, 700, 1 << 26])
def test_a_reader_goes_on_where_a_segment_ended(segment_bytes: int) -> None:
    """Its last run ended with the segment; what comes is in the next, or in the same."""
    disk = MemoryDisk()
    writer = BatchWriter(open_segments(disk, segment_bytes))
    writer.create(LOG_ID)
    reader = Reader(SegmentReader(disk, FOLDER))
    found: list[StoredEvent] = []
    for number in range(30):
        writer.write([draft(number), draft(100 + number)])
        while run := reader.next_run():
            found += run
        assert found[-1].position == writer.storage.tail().position
    assert [event.position for event in found] == list(range(1, 62))


def test_an_event_behind_the_tail_is_not_found(disk: MemoryDisk) -> None:
    write_log(disk, [1, 1])
    reader = SegmentReader(disk, FOLDER)
    with pytest.raises(NotFound, match="its tail is 3"):
        event_at(reader, 4)
    with pytest.raises(NotFound):
        event_at(reader, 400)
    with pytest.raises(ValueError, match="start at 1"):
        event_at(reader, 0)
    reader.close()
    with pytest.raises(NotFound, match="no log"):
        SegmentReader(disk, "/elsewhere")


def test_a_missing_segment_and_a_head_that_promises_too_much_are_corruption(disk: MemoryDisk) -> None:
    tails = write_log(disk, [1] * 12)
    middle = segment_firsts(disk, FOLDER)[1]
    promised = MemoryDisk.copy(disk)
    promised.put(HEAD_PATH, head_bytes(Tail(40, 40, tails[-1].time, "a" * 64)))
    with pytest.raises(CorruptLog) as caught:
        list(read_events(SegmentReader(promised, FOLDER)))
    assert caught.value.position == 14
    disk.unlink(path(middle))
    with pytest.raises(CorruptLog) as caught:
        list(read_events(SegmentReader(disk, FOLDER)))
    assert caught.value.position == middle


def test_a_follower_in_this_process_catches_up_says_so_once_and_crosses_rolls(disk: MemoryDisk) -> None:
    writer = BatchWriter(open_segments(disk))
    writer.create(LOG_ID)
    writer.write([draft(n) for n in range(5)])
    follower = Follower(SegmentReader(disk, FOLDER), 1, chunk_bytes=500)
    said: list[int | Progress] = []
    left = [25]

    def wait() -> bool:
        left[0] -= 1
        writer.write([draft(100 + left[0])])
        return left[0] > 0

    for found in follower.follow(wait):
        said += [found] if isinstance(found, Progress) else [event.position for event in found]
    assert said == [*range(1, 7), CAUGHT_UP, *range(7, 31)]
    assert len(segment_firsts(disk, FOLDER)) > 5


def test_a_slow_follower_holds_one_chunk_and_slows_nobody(disk: MemoryDisk) -> None:
    writer = BatchWriter(open_segments(disk, 1 << 20))
    writer.create(LOG_ID)
    slow = Follower(SegmentReader(disk, FOLDER), 1, chunk_bytes=20_000)
    slow.poll()
    for number in range(400):
        writer.write([sized(number, 20_000)])  # 8 MB behind its back
    tracemalloc.start()
    seen = 0
    while (found := slow.poll()) is not CAUGHT_UP:
        assert found is not None
        assert not isinstance(found, Progress)
        seen += len(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 400
    assert peak < 1_000_000
    writer.storage.close()


FOLLOWER = """
import sys
from pmagent.events.disk import RealDisk
from pmagent.events.reader import CAUGHT_UP, Follower
from pmagent.events.segments import SegmentReader
until = int(sys.argv[2])
for found in Follower(SegmentReader(RealDisk(), sys.argv[1]), 3).follow():
    if found is CAUGHT_UP:
        print("caught up", flush=True)
        continue
    for event in found:
        print(event.position, event.sum, flush=True)
    if found[-1].position == until:
        break
"""


def test_a_follower_in_another_process_stays_live_while_the_writer_rolls(tmp_path: Path) -> None:
    folder = str(tmp_path / "log")
    writer = BatchWriter(open_segments(RealDisk(), 700, folder=folder))
    writer.create(LOG_ID)
    writer.write([draft(n) for n in range(4)])
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, folder, "305"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as follower:
        assert follower.stdout is not None
        heard = [follower.stdout.readline() for _ in range(4)]
        assert heard[-1] == "caught up\n"
        for number in range(150):
            writer.write([draft(1000 + number), draft(2000 + number)])
        heard += follower.stdout.readlines()
    assert follower.returncode == 0
    expected = [f"{event.position} {event.sum}\n" for event in read_events(writer.storage, 3)]
    assert [line for line in heard if line != "caught up\n"] == expected
    assert heard.count("caught up\n") == 1
    assert len(segment_firsts(RealDisk(), folder)) > 50
    writer.storage.close()


@pytest.mark.slow
def test_a_reader_never_sees_anything_but_the_chain_while_a_writer_writes(tmp_path: Path) -> None:
    """Two processes at full speed; HEAD and lines are read while they are written."""
    folder = str(tmp_path / "log")
    writer = BatchWriter(open_segments(RealDisk(), 20_000, folder=folder))
    writer.create(LOG_ID)
    writer.write([draft(1), draft(2)])
    last = 2 * BATCHES + 3
    command = [sys.executable, "-c", FOLLOWER, folder, str(last)]
    followers = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(2)]
    for number in range(BATCHES):
        writer.write([draft(10_000 + number), draft(20_000 + number, 300)])
    told = [follower.communicate(timeout=60)[0].splitlines() for follower in followers]
    assert [follower.returncode for follower in followers] == [0, 0]
    for lines in told:
        assert [line.split()[0] for line in lines if line != b"caught up"] == [b"%d" % n for n in range(3, last + 1)]
        assert lines.count(b"caught up") <= 1, "it may never have caught up"
    writer.storage.close()


class Shifted(MemoryStorage):
    """A storage that is one position off: a bug of some other implementation."""

    def read(self, position: int, bytes_max: int = 1 << 20) -> bytes:
        """See StorageReader."""
        return super().read(position + 1, bytes_max)


def test_a_storage_that_hands_out_other_lines_is_found_wherever_reading_begins() -> None:
    writer = BatchWriter(Shifted())
    writer.create(LOG_ID)
    writer.write([draft(number) for number in range(2, 9)])
    for start in (1, 2, 5):
        with pytest.raises(CorruptLog, match="position"):
            Reader(writer.storage, start).next_run()
