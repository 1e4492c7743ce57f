"""The verifier: whatever is done to a log's bytes is found, with file, offset and position; the rest stays readable."""

from __future__ import annotations

import pytest

from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Tail
from pmagent.events.head import NAME as HEAD
from pmagent.events.reader import event_at
from pmagent.events.segments import SegmentReader, segment_name
from pmagent.events.store import Finding, Verification
from pmagent.events.verify import verify_log
from tests.support.cases import each
from tests.support.effort import NIGHT
from tests.support.logs import (
    FOLDER,
    HEAD_PATH,
    LOG_ID,
    BatchWriter,
    Line,
    all_events,
    draft,
    head_bytes,
    lines_of,
    open_segments,
    segment_paths,
    sums,
    write_log,
)
from tests.support.memory_disk import MemoryDisk, MemoryFile


def fresh(batches: tuple[int, ...] = (1, 2, 1, 3, 1), log_id: str = LOG_ID, kind: str = "note") -> MemoryDisk:
    disk = MemoryDisk()
    write_log(disk, batches, log_id=log_id, kind=kind)
    return disk


def verified(disk: MemoryDisk, *, decode: bool = False) -> Verification:
    return verify_log(FOLDER, disk, decode=decode)


def finding(disk: MemoryDisk) -> Finding:
    """The first bad event or file of a log that is not intact."""
    found = verified(disk).finding
    assert found is not None
    return found


def bad_place(disk: MemoryDisk) -> tuple[str, int, int]:
    """File, offset and position of the finding."""
    found = finding(disk)
    return found.file, found.offset, found.position


def assert_found(disk: MemoryDisk, line: Line) -> None:
    """The first bad event is ``line``'s; everything before it is intact and readable."""
    result = verified(disk)
    assert not result.ok
    assert bad_place(disk) == (line.file, line.start, line.position)
    assert result.tail.position == result.events == line.position - 1


def assert_readable(disk: MemoryDisk, pristine: list[str], position: int) -> None:
    """All before ``position`` can be read from the start, and each by itself; then the damage is told."""
    assert sums(all_events(disk, until=position - 1)) == pristine[: position - 1]
    reader = SegmentReader(disk, FOLDER)
    for before in range(1, position):
        assert event_at(reader, before).sum == pristine[before - 1]
    with pytest.raises(CorruptLog) as caught:
        all_events(disk)
    assert caught.value.position == position
    reader.close()


def test_an_intact_log_is_verified() -> None:
    disk = fresh()
    result = verified(disk, decode=True)
    assert result.ok
    assert (result.events, result.log_id, result.segments) == (9, LOG_ID, len(segment_paths(disk)))
    assert result.tail == result.durable
    assert result.bytes == sum(len(disk.read(path)) for path in segment_paths(disk))
    assert len(segment_paths(disk)) >= 3, "these tests are about several segments"
    assert disk.open_files == 0


def test_a_log_of_no_events_is_intact_and_a_folder_without_one_is_told(disk: MemoryDisk) -> None:
    open_segments(disk).close()
    assert verified(disk).ok
    with pytest.raises(NotFound):
        verify_log("/elsewhere", disk)


def bits_of(at: int) -> list[int]:
    """The bits to flip of the byte at ``at``: by day one of each byte."""
    return list(range(8)) if NIGHT else [at % 8]


@pytest.mark.slow
def test_every_single_bit_flip_of_every_segment_is_found() -> None:
    disk = fresh()
    pristine = sums(all_events(disk))
    flips = 0
    for line in lines_of(disk):
        data = disk.contents[line.path].data
        for at in range(line.start, line.end):
            for bit in bits_of(at):
                data[at] ^= 1 << bit
                assert_found(disk, line)
                if bit == at % 8 and at % 5 == 0:
                    assert_readable(disk, pristine, line.position)
                data[at] ^= 1 << bit
                flips += 1
    assert flips == len(bits_of(0)) * verified(disk).bytes
    assert disk.open_files == 0


def test_every_single_bit_flip_of_head_is_found_and_loses_nothing() -> None:
    disk = fresh()
    pristine = sums(all_events(disk))
    data = disk.contents[HEAD_PATH].data
    assert len(data) == 1024
    for at in range(len(data)):
        for bit in bits_of(at):
            data[at] ^= 1 << bit
            result = verified(disk)
            assert result.finding == Finding(HEAD, at // 512 * 512, 0, f"slot {at // 512} is damaged")
            assert result.events == len(pristine)
            data[at] ^= 1 << bit
        data[at] ^= 1
        storage = open_segments(disk)
        assert storage.tail().position == len(pristine)
        storage.close()
        assert verified(disk).ok, "opening mends HEAD"


def test_every_truncation_of_every_segment_is_found() -> None:
    disk = fresh()
    pristine = sums(all_events(disk))
    for line in lines_of(disk):
        whole = disk.read(line.path)
        for size in range(line.start, line.end):
            disk.put(line.path, whole[:size])
            result = verified(disk)
            assert result.finding is not None
            at_end = size == line.start and line.path != segment_paths(disk)[-1]
            if at_end:  # the file ends well: what is missing is the next position
                assert result.finding.position == line.position
                assert result.finding.file == segment_name(line.position)
            else:
                assert_found(disk, line)
            assert sums(all_events(disk, until=line.position - 1)) == pristine[: line.position - 1]
        disk.put(line.path, whole)
    assert verified(disk).ok


@each("size", range(0, 1024, 31))
def test_every_truncation_of_head_is_found(size: int) -> None:
    disk = fresh()
    disk.put(HEAD_PATH, disk.read(HEAD_PATH)[:size])
    assert finding(disk).file == HEAD


def test_a_head_that_grew_or_is_missing_is_found() -> None:
    disk = fresh()
    disk.put(HEAD_PATH, disk.read(HEAD_PATH) + b" ")
    assert verified(disk).finding == Finding(HEAD, 0, 0, "slot 0 is damaged")
    disk.unlink(HEAD_PATH)
    result = verified(disk)
    assert result.finding is not None
    assert result.finding.file == HEAD
    assert result.events == 9, "without HEAD the lines are still checked"


def test_every_removed_line_is_found() -> None:
    disk = fresh()
    sums(all_events(disk))
    last = lines_of(disk)[-1]
    for line in lines_of(disk):
        whole = disk.read(line.path)
        disk.put(line.path, whole[: line.start] + whole[line.end :])
        assert finding(disk).position == line.position
        if line is not last and line.end != len(whole):
            assert_found(disk, line)
        disk.put(line.path, whole)


def test_every_doubled_line_is_found() -> None:
    disk = fresh()
    for line in lines_of(disk):
        whole = disk.read(line.path)
        disk.put(line.path, whole[: line.end] + whole[line.start : line.end] + whole[line.end :])
        assert bad_place(disk) == (line.file, line.end, line.position + 1)
        disk.put(line.path, whole)


def test_every_two_swapped_lines_are_found() -> None:
    disk = fresh()
    sums(all_events(disk))
    lines = lines_of(disk)
    for first in lines:
        for second in lines[first.position :]:
            a, b = disk.read(first.path), disk.read(second.path)
            one, two = a[first.start : first.end], b[second.start : second.end]
            if first.path == second.path:
                disk.put(first.path, a[: first.start] + two + a[first.end : second.start] + one + a[second.end :])
            else:
                disk.put(first.path, a[: first.start] + two + a[first.end :])
                disk.put(second.path, b[: second.start] + one + b[second.end :])
            assert_found(disk, first)
            disk.put(first.path, a)
            disk.put(second.path, b)
    assert verified(disk).ok


def test_every_line_of_another_log_is_found() -> None:
    disk, other = fresh(), fresh(log_id="f" * 32)
    sums(all_events(disk))
    for line, foreign in zip(lines_of(disk), lines_of(other), strict=True):
        whole = disk.read(line.path)
        strange = other.read(foreign.path)[foreign.start : foreign.end]
        disk.put(line.path, whole[: line.start] + strange + whole[line.end :])
        if line.position == 1:
            assert bad_place(disk) == (line.file, 0, 1)
        else:
            assert_found(disk, line)
        disk.put(line.path, whole)


@each("what", ["removed", "foreign", "doubled", "emptied", "zeroed"])
def test_every_segment_that_is_tampered_with_is_found(what: str) -> None:
    for victim in segment_paths(fresh()):
        disk, other = fresh(), fresh(log_id="f" * 32)
        first = int(victim[-26:-6])
        content = disk.read(victim)
        if what == "removed":
            disk.unlink(victim)
        elif what == "foreign":
            disk.put(victim, other.read(victim))
        elif what == "doubled":
            disk.put(victim, content + content)
        else:
            disk.put(victim, b"" if what == "emptied" else bytes(len(content)))
        result = verified(disk)
        if what == "doubled":
            first += content.count(b"\n")
        assert result.finding is not None
        assert result.finding.position == first
        assert result.tail.position == first - 1
        assert sums(all_events(disk, until=first - 1)) == sums(all_events(fresh(), until=first - 1))


def test_swapped_segments_and_segments_in_between_are_found() -> None:
    disk = fresh()
    one, two, *_ = segment_paths(disk)
    a, b = disk.read(one), disk.read(two)
    disk.put(one, b)
    disk.put(two, a)
    assert bad_place(disk) == (segment_name(1), 0, 1)
    disk.put(one, a)
    disk.put(two, b)
    last = lines_of(disk)[-1]
    inside = segment_name(2)
    disk.put(f"{FOLDER}/{inside}", a)
    assert finding(disk).file == inside
    disk.unlink(f"{FOLDER}/{inside}")
    disk.put(f"{FOLDER}/{segment_name(last.position + 5)}", b)
    assert finding(disk).position == last.position + 1


@each("tail", [bytes(512), bytes(5000), b'{"posi', b"\n", b"\n\n{}\n", b"\xff" * 100, b"{" * 3000])
def test_what_follows_the_durable_end_is_told_and_is_no_finding(tail: bytes) -> None:
    disk = fresh()
    newest = segment_paths(disk)[-1]
    whole = disk.read(newest)
    disk.put(newest, whole + tail)
    result = verified(disk)
    assert result.ok
    assert (result.events, result.beyond_bytes) == (9, len(tail))
    assert result.beyond is not None
    assert (result.beyond.file, result.beyond.offset, result.beyond.position) == (newest[-26:], len(whole), 10)


def test_a_stale_tail_of_an_older_generation_is_no_event_and_is_found() -> None:
    """Blocks that held an earlier, cut tail come back: same log, same positions, another chain."""
    disk = fresh()
    old = fresh((1, 2, 1, 3, 2))
    newest = segment_paths(disk)[-1]
    write_log(disk, [1], kind="other")
    durable = verified(disk).tail
    stale = old.read(segment_paths(old)[-1]).splitlines(keepends=True)[-1]
    disk.put(segment_paths(disk)[-1], disk.read(segment_paths(disk)[-1]) + stale)
    result = verified(disk)
    assert result.tail == durable
    assert result.finding is not None
    assert result.finding.position == durable.position + 1
    assert newest in disk.contents


def test_a_copy_of_the_last_segment_under_the_next_name_is_found() -> None:
    disk = fresh()
    last = segment_paths(disk)[-1]
    following = len(lines_of(disk)) + 1
    disk.put(f"{FOLDER}/{segment_name(following)}", disk.read(last))
    assert bad_place(disk) == (segment_name(following), 0, following)


class BusyDisk(MemoryDisk):
    """Before the look number ``look`` (a folder's names, an opened file) somebody appends, and a segment is begun."""

    def __init__(self, look: int) -> None:
        super().__init__()
        self.look = look
        self.idle = True

    def names(self, folder: str) -> list[str]:
        self._looked()
        return super().names(folder)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> MemoryFile:
        self._looked()
        return super().open(path, write=write, create=create)

    def _looked(self) -> None:
        if not self.idle:
            self.look -= 1
            if self.look == 0:
                self.idle = True
                write_log(self, (1, 2, 1, 3))


@each("look", range(1, 12))
def test_a_log_that_grows_while_it_is_verified_is_intact(look: int) -> None:
    disk = BusyDisk(look)
    write_log(disk, (1, 2, 1, 3, 1))
    before = len(segment_paths(disk))
    disk.idle = False
    result = verified(disk)
    assert result.finding is None
    assert result.events >= result.durable.position >= 9
    assert len(segment_paths(disk)) > before or not disk.idle


@each("name", ["evil.jsonl", "1.jsonl", "00000000000000000001 (copy).jsonl"])
def test_a_file_that_looks_like_a_segment_and_is_none_is_found(name: str) -> None:
    disk = fresh()
    disk.put(f"{FOLDER}/{name}", disk.read(segment_paths(disk)[0]))
    result = verified(disk)
    assert result.finding is not None
    assert (result.finding.file, result.tail.position) == (name, len(lines_of(fresh())))


def test_a_torn_tail_in_a_segment_that_has_a_successor_is_a_finding_whatever_head_says() -> None:
    disk = fresh()
    first, *_ = segment_paths(disk)
    disk.put(HEAD_PATH, head_bytes(Tail()))
    disk.put(first, disk.read(first) + b"torn")
    assert finding(disk).file == first[-26:]


def test_damage_behind_a_stale_head_is_found_when_a_later_batch_is_intact(disk: MemoryDisk) -> None:
    write_log(disk, [1, 1, 1], segment_bytes=10_000)
    disk.put(HEAD_PATH, head_bytes(Tail()))
    line = lines_of(disk)[1]
    disk.contents[line.path].data[line.start + 30] ^= 1
    assert_found(disk, line)


def test_a_line_whose_batch_is_unreadable_is_of_the_batch_of_the_lines_around_it() -> None:
    """So the batch behind them proves that it was durable."""
    disk = MemoryDisk()
    write_log(disk, [1, 3, 1], segment_bytes=10_000)
    disk.put(HEAD_PATH, head_bytes(Tail()))
    line = lines_of(disk)[3]
    data = disk.contents[line.path].data
    data[data.index(b'"batch":', line.start) + 8] ^= 0x40
    data[line.end - 100] ^= 1
    assert_found(disk, line)
    with pytest.raises(CorruptLog, match="batch 4 behind it is intact"):
        open_segments(disk, 10_000)


def test_a_shortened_log_that_goes_on_is_found_by_head() -> None:
    """Truncate, then continue: HEAD of before does not fit what was written instead."""
    disk = fresh()
    old_head = disk.read(HEAD_PATH)
    cut = lines_of(disk)[-3]
    for path in segment_paths(disk):
        if path > cut.path:
            disk.unlink(path)
    disk.put(cut.path, disk.read(cut.path)[: cut.start])
    disk.put(HEAD_PATH, head_bytes(_tail_at(cut.position - 1)))
    disk.sealed.clear()
    write_log(disk, [1, 1, 1, 1], kind="other")
    assert verified(disk).ok, "with a HEAD made to fit, only an outside anchor can tell"
    disk.put(HEAD_PATH, old_head)
    assert finding(disk).position == 9
    with pytest.raises(CorruptLog):
        open_segments(disk)


def _tail_at(position: int) -> Tail:
    event = all_events(fresh())[position - 1]
    assert event.position == position
    return Tail(event.position, event.batch, event.time, event.sum)


def test_equal_ids_are_no_finding() -> None:
    """A source may resend a fact long after; that it is taken once is promised among the latest facts only."""
    disk = MemoryDisk()
    writer = BatchWriter(open_segments(disk))
    writer.create(LOG_ID)
    writer.write([draft(1), draft(1)])
    writer.storage.close()
    assert verified(disk, decode=True).ok
