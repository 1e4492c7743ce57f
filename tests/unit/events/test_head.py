"""HEAD: two slots, of which one is whole at any time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events.event import Tail
from pmagent.events.head import NAME, SLOT_BYTES, HeadFile, HeadSlot, decode_head, decode_slot, encode_slot, read_head
from tests.support.cases import each
from tests.support.logs import FOLDER, HEAD_PATH, LOG_ID
from tests.support.memory_disk import MemoryDisk, MemoryFile


def slot(batch: int) -> HeadSlot:
    """A slot that batch number ``batch`` left."""
    return HeadSlot(LOG_ID, 3 * batch, batch, "2026-11-21T19:50:00.000000Z", f"{batch:064x}")


def test_a_slot_fills_one_sector_and_is_read_back() -> None:
    for made in (slot(0), slot(7), HeadSlot(LOG_ID, 2**62, 2**62, "2026-11-21T19:50:00.000000Z", "f" * 64)):
        raw = encode_slot(made)
        assert len(raw) == SLOT_BYTES
        assert raw.endswith(b"\n")
        assert decode_slot(raw) == made


def test_every_flipped_bit_and_every_other_length_damages_a_slot() -> None:
    raw = encode_slot(slot(5))
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        assert decode_slot(bytes(damaged)) is None
    for size in range(SLOT_BYTES):
        assert decode_slot(raw[:size]) is None
    assert decode_slot(bytes(SLOT_BYTES)) is None
    assert decode_slot(raw + b"\0") is None


@given(st.binary(max_size=1100))
def test_any_bytes_are_read_as_damage_at_worst(raw: bytes) -> None:
    assert decode_head(raw).damaged == (0, 1)
    assert decode_head(raw).newest is None


def test_the_newest_whole_slot_counts() -> None:
    old, new = encode_slot(slot(4)), encode_slot(slot(5))
    zero = bytes(SLOT_BYTES)
    for raw, newest, damaged in (
        (old + new, slot(5), ()),
        (new + old, slot(5), ()),
        (old + zero, slot(4), (1,)),
        (zero + new, slot(5), (0,)),
        (old, slot(4), (1,)),
        (old + new[:100], slot(4), (1,)),
        (old + new + b"\n", None, (0, 1)),
        (b"", None, (0, 1)),
    ):
        reading = decode_head(raw)
        assert (reading.newest, reading.damaged) == (newest, damaged)


def test_writing_alternates_so_that_the_slot_before_stays_whole(disk: MemoryDisk) -> None:
    head = HeadFile.create(disk, FOLDER, LOG_ID)
    assert decode_head(disk.read(HEAD_PATH)).newest == HeadSlot(LOG_ID, 0, 0, "", Tail().sum)
    before = disk.read(HEAD_PATH)
    for batch in range(1, 8):
        head.write(slot(batch).tail(), 1)
        now = disk.read(HEAD_PATH)
        at = SLOT_BYTES * (batch % 2)
        assert decode_slot(now[at : at + SLOT_BYTES]) == slot(batch)
        other = SLOT_BYTES - at
        assert now[other : other + SLOT_BYTES] == before[other : other + SLOT_BYTES]
        assert head.read().newest == slot(batch)
        before = now
    head.close()
    assert disk.open_files == 0


@each("operation", range(6))
def test_a_power_loss_while_it_is_made_leaves_it_whole_or_absent(operation: int) -> None:
    disk = MemoryDisk()
    left = operation

    def fail(_operation: str, _path: str) -> None:
        nonlocal left
        if left == 0:
            raise OSError("gone")
        left -= 1

    disk.before = fail
    with pytest.raises(OSError, match="gone"):
        HeadFile.create(disk, FOLDER, LOG_ID)
    for after in (disk.power_loss(lambda: True), disk.power_loss(lambda: False)):
        if NAME in after.names(FOLDER):
            assert decode_head(after.read(HEAD_PATH)).damaged == ()
        HeadFile.create(after, FOLDER, LOG_ID).close()  # a leftover is in nobody's way


def test_settling_syncs_once_for_what_was_written(disk: MemoryDisk) -> None:
    head = HeadFile.create(disk, FOLDER, LOG_ID)
    done: list[str] = []
    disk.before = lambda operation, _path: done.append(operation)
    for batch in (1, 2):
        head.settle()
        head.settle()
        head.write(slot(batch).tail(), 1)
    head.settle()
    assert done == ["sync", "write_at", "sync", "write_at", "sync"]


@each("damaged", [(), (0,), (1,), (0, 1)])
@each("newest", [4, 5])
def test_mending_keeps_a_whole_slot_at_any_time(damaged: tuple[int, ...], newest: int) -> None:
    disk = MemoryDisk()
    head = HeadFile.create(disk, FOLDER, LOG_ID)
    for batch in (newest - 1, newest):
        head.write(slot(batch).tail(), 1)
    raw = bytearray(disk.read(HEAD_PATH))
    for index in damaged:
        raw[SLOT_BYTES * index + 20] ^= 1
    disk.put(HEAD_PATH, bytes(raw))
    seen = []
    disk.before = lambda _operation, _path: seen.append(decode_head(disk.read(HEAD_PATH)))
    head.repair(slot(9).tail(), 1)
    assert decode_head(disk.read(HEAD_PATH)).damaged == ()
    assert decode_head(disk.read(HEAD_PATH)).newest == slot(9)
    whole = [reading.newest for reading in seen if len(damaged) < 2]
    assert None not in whole
    assert disk.power_loss().read(HEAD_PATH) == disk.read(HEAD_PATH)


def test_a_slot_that_is_met_half_written_is_looked_at_again(disk: MemoryDisk) -> None:
    head = HeadFile.create(disk, FOLDER, LOG_ID)
    head.write(slot(4).tail(), 1)
    whole = disk.read(HEAD_PATH)
    half = whole[: SLOT_BYTES + 200] + bytes(len(whole) - SLOT_BYTES - 200)

    class Written(MemoryFile):
        """A HEAD that becomes whole at the third look."""

        looks = 0

        def read_at(self, offset: int, size: int) -> bytes:
            """See DiskFile."""
            self.looks += 1
            return (whole if self.looks > 2 else half)[offset : offset + size]

    file = Written(disk, HEAD_PATH, disk.contents[HEAD_PATH])
    assert read_head(file) == decode_head(whole)
    assert file.looks == 3
