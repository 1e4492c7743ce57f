"""Opening a log: a torn tail is cut and kept aside, corruption is refused, what was acknowledged is never cut."""

from __future__ import annotations

import msgspec
import pytest

from pmagent.events.errors import CorruptLog
from pmagent.events.event import LogRecovered, Tail, format_time, parse_time
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import SLOT_BYTES
from pmagent.events.log import opening_events
from pmagent.events.segments import segment_name
from pmagent.events.verify import verify_log
from tests.support.cases import each
from tests.support.logs import (
    FOLDER,
    HEAD_PATH,
    LOG_ID,
    BatchWriter,
    all_events,
    draft,
    head_bytes,
    lines_of,
    open_segments,
    path,
    segment_paths,
    sums,
    write_log,
)
from tests.support.memory_disk import SECTOR, MemoryDisk

ONE_SEGMENT = 1 << 20
STALE = head_bytes(Tail())


def written(batches: tuple[int, ...] = (1, 2, 1, 3, 1, 2), segment_bytes: int = ONE_SEGMENT) -> MemoryDisk:
    disk = MemoryDisk()
    write_log(disk, batches, segment_bytes)
    return disk


def opened(disk: MemoryDisk) -> tuple[int, LogRecovered | None]:
    """Open and close: the position of the tail, and what was cut."""
    storage = open_segments(disk, ONE_SEGMENT)
    storage.close()
    return storage.tail().position, storage.recovered


def refused(disk: MemoryDisk) -> tuple[str, int, int]:
    """Where opening says that the log is corrupt. Nothing is changed by it."""
    before = {name: disk.read(name) for name in disk.contents}
    with pytest.raises(CorruptLog) as caught:
        open_segments(disk)
    assert {name: disk.read(name) for name in disk.contents} == before
    assert disk.open_files == 0
    return caught.value.file, caught.value.offset, caught.value.position


@each("stale", [False, True])
def test_an_intact_log_opens_whatever_head_covers(stale: bool) -> None:
    disk = written()
    pristine = sums(all_events(disk))
    if stale:
        disk.put(HEAD_PATH, STALE)
    assert opened(disk) == (len(pristine), None)
    assert sums(all_events(disk)) == pristine
    assert verify_log(FOLDER, disk).durable.position == len(pristine)
    assert disk.open_files == 0


def test_a_tail_torn_at_every_byte_is_cut_kept_and_told() -> None:
    disk = written()
    pristine = sums(all_events(disk))
    lines = lines_of(disk)
    whole = disk.read(path(1))
    acknowledged = 8  # of 11: the last batch (10, 11) and 9 were not
    disk.put(HEAD_PATH, head_bytes(_tail(disk, acknowledged)))
    for size in range(lines[acknowledged - 1].end, len(whole) + 1):
        torn = disk.copy()
        torn.put(path(1), whole[:size])
        last = max(line for line in lines if line.end <= size)
        position, recovered = opened(torn)
        assert position == last.position
        assert sums(all_events(torn)) == pristine[:position]
        if size == last.end:
            assert recovered is None
            continue
        assert recovered is not None
        assert (recovered.segment, recovered.offset) == (segment_name(1), last.end)
        assert recovered.cut_bytes == size - last.end
        assert torn.power_loss().read(f"{FOLDER}/{recovered.kept_as}") == whole[last.end : size]


def test_every_tail_that_head_covers_is_missed_at_every_byte() -> None:
    disk = written()
    lines = lines_of(disk)
    whole = disk.read(path(1))
    for size in range(len(whole)):
        disk.put(path(1), whole[:size])
        first_bad = next(line for line in lines if line.end > size)
        assert refused(disk) == (segment_name(1), first_bad.start, first_bad.position)


def test_every_512_byte_subset_of_the_last_batch_lost_opens_without_loss() -> None:
    """Pages of the unsynced batch arrive in any order, or not at all."""
    disk = MemoryDisk()
    write_log(disk, [2, 1], ONE_SEGMENT)
    durable = len(disk.read(path(1)))
    acknowledged = sums(all_events(disk))
    write_log(disk, [7], ONE_SEGMENT, size=150)
    whole = disk.read(path(1))
    sectors = range(durable // SECTOR, (len(whole) + SECTOR - 1) // SECTOR)
    assert 5 <= len(sectors) <= 9
    for lost in range(1, 1 << len(sectors)):
        torn = bytearray(whole)
        for number, sector in enumerate(sectors):
            if lost >> number & 1:
                start, end = max(durable, sector * SECTOR), min((sector + 1) * SECTOR, len(whole))
                torn[start:end] = bytes(end - start)
        for head in (STALE, head_bytes(_tail(disk, len(acknowledged)))):
            crashed = disk.copy()
            crashed.put(path(1), bytes(torn))
            crashed.put(HEAD_PATH, head)
            position, recovered = opened(crashed)
            assert recovered is not None
            assert position >= len(acknowledged)
            assert sums(all_events(crashed))[: len(acknowledged)] == acknowledged
            assert recovered.cut_bytes == len(whole) - recovered.offset
            assert opened(crashed)[0] == position


def test_a_bit_flip_in_any_batch_but_the_last_is_refused_even_if_head_is_stale() -> None:
    """Also where the flip hits what says to which batch the line belongs."""
    disk = written()
    disk.put(HEAD_PATH, STALE)
    data = disk.contents[path(1)].data
    last_batch = {event.position for event in all_events(written()) if event.batch == 7}
    assert last_batch == {10, 11}
    for line in lines_of(disk):
        for at in range(line.start, line.end):
            bit = 1 << at % 8
            for mask in {bit, 1, 2, 4, 8} if at < line.start + 45 else {bit}:
                data[at] ^= mask
                if line.position in last_batch:
                    if at >= line.start + 45:  # before, it may say that it is of the batch before
                        assert opened(disk.copy())[0] == line.position - 1
                else:
                    assert refused(disk) == (segment_name(1), line.start, line.position)
                data[at] ^= mask


def test_the_last_batch_rotten_without_a_witness_looks_like_a_tear_and_is_kept_aside() -> None:
    disk = written()
    disk.put(HEAD_PATH, STALE)
    line = lines_of(disk)[9]
    disk.contents[path(1)].data[line.start + 50] ^= 4
    rotten = disk.read(path(1))
    position, recovered = opened(disk)
    assert position == 9
    assert recovered is not None
    assert disk.read(f"{FOLDER}/{recovered.kept_as}") == rotten[line.start :]


def test_recovery_is_told_once_in_the_log() -> None:
    disk = written()
    disk.put(path(1), disk.read(path(1)) + b'{"position":12,"ba')
    storage = open_segments(disk, ONE_SEGMENT)
    writer = BatchWriter(storage)
    assert storage.recovered is not None
    at = format_time(parse_time("2026-11-22T00:00:00.000000Z"))
    events = opening_events(storage, storage.log_id(), storage.recovered, writer.sequencer, at)
    assert [event.type for event in events] == ["log.recovered"]
    writer.committer.submit(events)
    writer.committer.commit()
    storage.close()
    told = msgspec.json.decode(all_events(disk)[-1].data, type=LogRecovered)
    assert (told.cut_bytes, told.kept_as) == (18, storage.recovered.kept_as)
    assert opened(disk) == (12, None)


def test_recovery_that_crashed_before_it_was_told_is_told_by_the_next_opening() -> None:
    disk = written()
    size = len(disk.read(path(1)))
    disk.put(path(1), disk.read(path(1)) + b"torn")
    _, first = opened(disk)
    _, second = opened(disk)
    assert first is not None
    assert second is not None
    assert (second.segment, second.offset, second.cut_bytes, second.kept_as) == (first.segment, size, 4, first.kept_as)


def test_a_second_tear_at_the_same_byte_keeps_both() -> None:
    disk = written()
    size = len(disk.read(path(1)))
    kept = []
    for tear in (b"one", b"and two"):
        disk.put(path(1), disk.read(path(1))[:size] + tear)
        _, recovered = opened(disk)
        assert recovered is not None
        kept.append(disk.read(f"{FOLDER}/{recovered.kept_as}"))
    assert kept == [b"one", b"and two"]


def test_whole_lines_that_were_not_acknowledged_stay_and_become_durable() -> None:
    """They are written again: a sync that failed before may have forgotten them though they can be read."""
    disk = written()
    pristine = sums(all_events(disk))
    disk.put(HEAD_PATH, head_bytes(_tail(disk, 8)))
    whole = disk.read(path(1))
    disk.contents[path(1)].durable = whole[: lines_of(disk)[7].end]
    rewritten: list[str] = []
    disk.before = lambda operation, where: rewritten.append(operation) if where == path(1) else None
    assert opened(disk) == (len(pristine), None)
    assert rewritten == ["write_at", "sync"]
    assert sums(all_events(disk.power_loss())) == pristine


def test_names_that_a_crashed_process_left_unsynced_become_durable(disk: MemoryDisk) -> None:
    write_log(disk, [1, 2], 300)
    for content in disk.contents.values():
        content.durable = bytes(content.data)
    disk.durable_names = {}
    opened(disk)
    assert segment_paths(disk.power_loss()) == segment_paths(disk)
    assert verify_log(FOLDER, disk.power_loss()).ok


def test_leftovers_of_a_crash_are_removed() -> None:
    disk = written()
    disk.put(f"{path(12)}.tmp", b"")
    disk.put(f"{HEAD_PATH}.tmp", b"half")
    opened(disk)
    assert [name for name in disk.names(FOLDER) if name.endswith(".tmp")] == []


def test_a_half_made_head_of_a_new_log_is_made_anew(disk: MemoryDisk) -> None:
    disk.put(f"{HEAD_PATH}.tmp", b"half")
    assert opened(disk) == (0, None)
    assert disk.names(FOLDER) == [HEAD_NAME]


def test_a_missing_head_is_refused_where_there_are_events() -> None:
    disk = written()
    disk.unlink(HEAD_PATH)
    assert refused(disk) == (HEAD_NAME, 0, 0)


def test_a_head_with_two_damaged_slots_is_refused() -> None:
    disk = written()
    disk.contents[HEAD_PATH].data[3] ^= 1
    disk.contents[HEAD_PATH].data[SLOT_BYTES + 3] ^= 1
    assert refused(disk) == (HEAD_NAME, 0, 0)


@each("at", [SLOT_BYTES - 1, SLOT_BYTES, 2 * SLOT_BYTES - 1])
def test_one_damaged_slot_is_mended_and_a_whole_one_is_there_at_any_time(at: int) -> None:
    disk = written()
    disk.contents[HEAD_PATH].data[at] ^= 1
    whole: list[bool] = []

    def look(operation: str, where: str) -> None:
        if operation == "write_at" and where == HEAD_PATH:
            other = disk.copy()
            offset = SLOT_BYTES if not whole else 0
            offset = offset if at >= SLOT_BYTES else SLOT_BYTES - offset
            other.contents[HEAD_PATH].data[offset : offset + SLOT_BYTES] = bytes(SLOT_BYTES)
            whole.append(open_segments(other).tail().position == 11)

    disk.before = look
    assert opened(disk) == (11, None)
    assert whole == [True, True]
    disk.before = lambda _operation, _where: None
    assert verify_log(FOLDER, disk).ok


@each("segment_bytes", [ONE_SEGMENT, 700])
@each("position", [0, 2, 7, 11, 30])
def test_a_head_of_another_log_is_refused(segment_bytes: int, position: int) -> None:
    disk, other = written(segment_bytes=segment_bytes), MemoryDisk()
    write_log(other, [1] * 40, segment_bytes, log_id="f" * 32)
    disk.put(HEAD_PATH, head_bytes(_tail(other, position), "f" * 32))
    refused(disk)
    disk.put(HEAD_PATH, head_bytes(_tail(other, position)))
    if position:
        refused(disk)


@each("victim", [0, 1, 2])
@each("what", ["removed", "truncated", "emptied", "foreign", "last line", "last data", "last bit"])
@each("stale", [False, True])
def test_damage_at_the_end_of_an_older_segment_is_refused(victim: int, what: str, stale: bool) -> None:
    disk, other = written(segment_bytes=700), MemoryDisk()
    write_log(other, (1, 2, 1, 3, 1, 2), 700, log_id="f" * 32)
    paths = segment_paths(disk)
    assert len(paths) >= 4
    where = paths[victim]
    data = disk.contents[where].data
    if what == "removed":
        disk.unlink(where)
    elif what == "truncated":
        del data[-1]
    elif what == "emptied":
        data.clear()
    elif what == "foreign":
        disk.put(where, other.read(where))
    elif what == "last line":
        data[data.rfind(b"\n", 0, -1) + 60] ^= 8
    elif what == "last data":  # its own sum does not say so: the next segment follows from that
        data[data.rfind(b"x")] ^= 1
    else:
        data[-1] ^= 1
    if stale:
        disk.put(HEAD_PATH, STALE)
    refused(disk)


def test_a_lost_newest_segment_is_refused_when_head_covers_it() -> None:
    disk = written(segment_bytes=700)
    newest = segment_paths(disk)[-1]
    disk.unlink(newest)
    assert refused(disk)[2] == int(newest[-26:-6])


def test_a_lost_newest_segment_is_refused_when_the_one_before_is_sealed() -> None:
    disk = written(segment_bytes=700)
    newest = segment_paths(disk)[-1]
    disk.unlink(newest)
    disk.put(HEAD_PATH, STALE)
    with pytest.raises(CorruptLog) as caught:
        open_segments(disk)
    assert caught.value.file == newest[-26:]


def test_a_lost_log_is_refused_when_head_knows_of_it() -> None:
    disk = written()
    disk.unlink(path(1))
    assert refused(disk) == (segment_name(1), 0, 1)


def test_head_vouches_for_every_segment_but_the_newest() -> None:
    """It is synced before a new segment is begun, so a stale one is never older than that."""
    disk = MemoryDisk()
    storage = open_segments(disk)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    for number in range(12):
        writer.write([draft(number)])
    lost = disk.power_loss()
    assert verify_log(FOLDER, lost).durable.position == int(segment_paths(disk)[-1][-26:-6]) - 1
    storage.close()


def test_a_crash_at_the_roll_leaves_a_log_that_opens_with_its_older_segment_sealed() -> None:
    disk = written(segment_bytes=700)
    older = segment_paths(disk)[-2]
    disk.sealed.discard(older)
    opened(disk)
    assert older in disk.sealed


OPERATIONS = ["create", "append", "sync", "sync_folder", "truncate", "write_at", "unlink", "seal"]


@each("operation", OPERATIONS)
def test_an_opening_that_fails_leaves_no_file_open_and_the_next_one_opens(operation: str) -> None:
    disk = written(segment_bytes=700)
    disk.put(f"{path(99)}.tmp", b"")
    newest = segment_paths(disk)[-1]
    disk.put(newest, disk.read(newest) + b"torn")
    disk.put(HEAD_PATH, head_bytes(_tail(disk, 9)))

    def fail(name: str, _where: str) -> None:
        if name == operation:
            raise OSError(5, "Input/output error")

    disk.before = fail
    with pytest.raises(OSError, match="Input/output error"):
        open_segments(disk)
    assert disk.open_files == 0
    disk.before = lambda _operation, _where: None
    assert opened(disk)[0] == 11


def _tail(disk: MemoryDisk, position: int) -> Tail:
    if position == 0:
        return Tail()
    event = all_events(disk)[position - 1]
    return Tail(event.position, event.batch, event.time, event.sum)
