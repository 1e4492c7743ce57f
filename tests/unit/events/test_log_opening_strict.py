"""Opening a log: the newest segment is missed, a whole foreign line is no torn tail, torn bytes are kept aside once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Tail, format_time
from pmagent.events.head import SLOT_BYTES, decode_head
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
    write_log,
)
from tests.support.memory_disk import MemoryDisk
from tests.unit.events.test_log_opening import ONE_SEGMENT, opened, refused, written

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def tail_at(disk: MemoryDisk, position: int) -> Tail:
    """The tail of the log as it was at ``position``."""
    event = all_events(disk)[position - 1]
    return Tail(event.position, event.batch, event.time, event.sum)


# --- what HEAD says of the newest segment ---------------------------------------------------------------------------


def rolled_and_lost() -> MemoryDisk:
    """A log after a power loss just behind a roll: HEAD is as it was synced then, and no file is sealed for root."""
    disk = MemoryDisk()
    storage = open_segments(disk, 400)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    while len(segment_paths(disk)) < 3:
        writer.write([draft(storage.tail().position + 1, 100)])
    lost = disk.power_loss()
    assert verify_log(FOLDER, lost).durable.position == storage.tail().position - 1, "HEAD does not know of the last"
    storage.close()
    return lost


@each("slot", [None, 0, 1])
@each("removed", [1, 2])
def test_a_newest_segment_that_is_removed_right_after_the_roll_is_missed(slot: int | None, removed: int) -> None:
    disk = rolled_and_lost()
    newest = segment_paths(disk)[-1]
    assert opened(disk.copy())[0] == verify_log(FOLDER, disk).tail.position, "unharmed, it opens"
    for gone in segment_paths(disk)[-removed:]:
        disk.unlink(gone)
    if slot is not None:
        raw = bytearray(disk.read(HEAD_PATH))
        raw[slot * SLOT_BYTES] ^= 1
        disk.put(HEAD_PATH, bytes(raw))
    assert refused(disk)[0] == newest[-26:]
    finding = verify_log(FOLDER, disk).finding
    assert finding is not None
    assert slot is not None or finding.file in {newest[-26:], segment_name(int(newest[-26:-6]))}


def test_head_notes_a_segment_before_anything_stands_in_it(disk: MemoryDisk) -> None:
    storage = open_segments(disk, 400)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    noted: list[int] = []

    def note(operation: str, name: str) -> None:
        if operation == "append" and name.endswith(".jsonl.tmp"):  # a segment keeps the path it was made with
            slot = decode_head(disk.contents[HEAD_PATH].durable).newest
            noted.append(slot.segment if slot else 0)

    disk.before = note
    while len(segment_paths(disk)) < 3:
        writer.write([draft(storage.tail().position + 1, 100)])
    storage.close()
    assert {int(name[-26:-6]) for name in segment_paths(disk)[1:]} == set(noted) - {1}


def test_the_head_of_a_log_with_one_segment_is_what_an_earlier_release_reads() -> None:
    assert b"segment" not in written().read(HEAD_PATH)


def test_a_head_of_an_earlier_release_opens_and_is_brought_up_to_date() -> None:
    disk = written(segment_bytes=700)
    newest = segment_paths(disk)[-1]
    disk.put(HEAD_PATH, head_bytes(tail_at(disk, 11)))
    assert opened(disk)[0] == 11
    slot = decode_head(disk.read(HEAD_PATH)).newest
    assert slot is not None
    assert slot.segment == int(newest[-26:-6])


# --- what is no torn tail, and what is kept of one ------------------------------------------------------------------


@each("which", ["the last line again", "an older line", "two lines again", "a line of the future"])
def test_a_whole_line_of_another_position_is_corruption_for_opening_and_verify(which: str) -> None:
    disk = written()
    lines = lines_of(disk)
    raw = disk.read(path(1))
    more = {
        "the last line again": raw[lines[-1].start :], "an older line": raw[lines[3].start : lines[3].end],
        "two lines again": raw[lines[-2].start :],
        "a line of the future": raw[lines[-1].start :].replace(b'"position":11,', b'"position":13,'),
    }[which]  # fmt: skip
    disk.put(path(1), raw + more)
    disk.put(HEAD_PATH, head_bytes(tail_at(disk, 9)))
    assert refused(disk) == (segment_name(1), len(raw), 12)
    finding = verify_log(FOLDER, disk).finding
    assert finding is not None
    assert (finding.offset, finding.position) == (len(raw), 12)


def test_a_long_line_of_another_position_is_seen_whole_by_both(disk: MemoryDisk) -> None:
    write_log(disk, [1, 1], 1 << 24, size=600_000)
    raw = disk.read(path(1))
    disk.put(path(1), raw + raw[lines_of(disk)[-1].start :])
    assert refused(disk)[2] == 4
    assert verify_log(FOLDER, disk).finding is not None


def _kept_aside(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.names(FOLDER) if ".torn-" in name or name.endswith(".tmp")]


@each("room", [0, 10, 60, 300, 700, 5_000])
def test_starts_on_a_full_disk_keep_torn_bytes_aside_once(room: int) -> None:
    disk = written()
    raw, torn = disk.read(path(1)), b'{"position":12,"batch":7,' + b"x" * 40
    disk.put(path(1), raw + torn)
    for _ in range(25):
        disk.room = room
        try:
            storage = open_segments(disk, ONE_SEGMENT)
        except OSError:
            continue
        try:
            writer = BatchWriter(storage)
            events = opening_events(storage, LOG_ID, storage.recovered, writer.sequencer, format_time(NOW))
            writer.committer.submit(events)
            writer.committer.commit()
            writer.write([draft(99, 6_000)])
        except OutcomeUnknown:
            pass
        finally:
            storage.close()
    assert len(_kept_aside(disk)) == (1 if room >= len(torn) else 0)
    disk.room = None
    assert opened(disk)[0] >= 11
    assert disk.read(path(1)).startswith(raw)
    assert [disk.read(f"{FOLDER}/{name}") for name in _kept_aside(disk)] == [torn]


def test_a_copy_that_an_opening_left_before_it_cut_is_not_made_again() -> None:
    disk = written()
    torn = b"torn" * 100
    disk.put(path(1), disk.read(path(1)) + torn)

    def fail(operation: str, _where: str) -> None:
        if operation == "truncate":
            raise OSError(5, "Input/output error")

    for _ in range(3):
        disk.before = fail
        with pytest.raises(OSError, match="Input/output error"):
            open_segments(disk)
    disk.before = lambda *_: None
    assert opened(disk)[0] == 11
    assert [disk.read(f"{FOLDER}/{name}") for name in _kept_aside(disk)] == [torn]
