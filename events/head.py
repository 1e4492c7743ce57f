"""HEAD: the durable end of the log, in two alternating checksummed slots of one small file (docs/design.md §2.2).

It is written after each batch and synced on idle and at close. It tells readers in other processes how far they may
read, and tells the opening writer whether a bad line was durable (corruption) or not (a torn tail).
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from pmagent.events.disk import Disk, DiskFile, Status
from pmagent.events.event import Tail

NAME: Final = "HEAD"
SLOT_BYTES: Final = 512
"""One slot fills one disk sector, the unit that a disk writes whole."""

LOOKS: Final = 8
"""How often damaged slots are looked at before they count as damaged."""


class HeadSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a slot, besides its own checksum. ``segment`` is the first position of the newest segment: that it
    was begun is durable. It is written from the second segment on, so that an earlier release, which knows no such
    field, reads the HEAD of every log that has one; the others it refuses as damaged."""

    log_id: str
    position: int
    batch: int
    time: str
    sum: str
    segment: int = 1

    def tail(self) -> Tail:
        """The same as a tail."""
        return Tail(self.position, self.batch, self.time, self.sum)


class HeadReading(msgspec.Struct, frozen=True):
    """HEAD as it was found: the newest valid slot, and which slots (0, 1) are damaged."""

    newest: HeadSlot | None
    damaged: tuple[int, ...]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(HeadSlot)


def encode_slot(slot: HeadSlot) -> bytes:
    """The slot's ``SLOT_BYTES`` bytes: JSON, blanks, SHA-256 of all that in hex, newline."""
    text = _encode(slot).ljust(SLOT_BYTES - 65)
    return text + sha256(text).hexdigest().encode() + b"\n"


@lru_cache(maxsize=16)
def decode_slot(raw: bytes) -> HeadSlot | None:
    """The content of a slot; None when it is damaged. Of two slots one changes at a time."""
    text, check = raw[: SLOT_BYTES - 65], raw[SLOT_BYTES - 65 :]
    if check != sha256(text).hexdigest().encode() + b"\n":
        return None
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return None


@lru_cache(maxsize=16)
def decode_head(raw: bytes) -> HeadReading:
    """Both slots of a HEAD file's bytes. A file of another length has damaged slots. It is read far more often than it
    changes."""
    slots = [decode_slot(raw[:SLOT_BYTES]), decode_slot(raw[SLOT_BYTES : 2 * SLOT_BYTES])]
    if len(raw) > 2 * SLOT_BYTES:
        slots = [None, None]
    damaged = tuple(index for index, slot in enumerate(slots) if slot is None)
    whole = [slot for slot in slots if slot is not None]
    return HeadReading(max(whole, key=lambda slot: (slot.batch, slot.segment), default=None), damaged)


def read_head(file: DiskFile) -> HeadReading:
    """Read HEAD while it may be written: a slot that is met half-written is whole at another look."""
    for _ in range(LOOKS):
        reading = decode_head(file.read_at(0, 2 * SLOT_BYTES + 1))
        if not reading.damaged:
            break
    return reading


class HeadFile:
    """The open HEAD. ``write`` alternates the slots by batch number, so the other one stays whole."""

    def __init__(self, file: DiskFile, log_id: str) -> None:
        self._file = file
        self._log_id = log_id
        self._synced = False  # a process that crashed may not have come to it

    @classmethod
    def create(cls, disk: Disk, folder: str, log_id: str) -> HeadFile:
        """Make HEAD (both slots: nothing durable yet) and make it durable, name included."""
        temporary = f"{folder}/{NAME}.tmp"
        disk.unlink(temporary)
        file = disk.open(temporary, create=True)
        empty = encode_slot(HeadSlot(log_id, 0, 0, "", Tail().sum))
        try:
            file.append(empty + empty)
            file.sync()
        finally:
            file.close()
        disk.rename(temporary, f"{folder}/{NAME}")
        disk.sync_folder(folder)
        return cls(disk.open(f"{folder}/{NAME}", write=True), log_id)

    def read(self) -> HeadReading:
        """Both slots, as they are now."""
        return read_head(self._file)

    def status(self) -> Status:
        """Which file it is."""
        return self._file.status()

    def is_left(self) -> bool:
        """Whether it is as long as HEAD is, and has one name."""
        return self._file.is_left(2 * SLOT_BYTES)

    def write(self, tail: Tail, segment: int) -> None:
        """Note ``tail``, in the segment that begins at position ``segment``, as durable; not synced yet."""
        slot = HeadSlot(self._log_id, tail.position, tail.batch, tail.time, tail.sum, segment)
        self._file.write_at(SLOT_BYTES * (tail.batch % 2), encode_slot(slot))
        self._synced = False

    def repair(self, tail: Tail, segment: int) -> None:
        """Write both slots and sync: after an opening that found the log whole up to ``tail``, and for a new segment.
        The slot that is damaged or older goes first, so that there is a whole one at any time."""
        reading = self.read()
        worse = (reading.newest.batch + 1) % 2 if reading.newest is not None else 0
        if reading.damaged:
            worse = reading.damaged[0]
        slot = encode_slot(HeadSlot(self._log_id, tail.position, tail.batch, tail.time, tail.sum, segment))
        for index in (worse, 1 - worse):
            self._file.write_at(SLOT_BYTES * index, slot)
            self._file.sync()
        self._synced = True

    def settle(self) -> None:
        """Make what was written durable."""
        if not self._synced:
            self._file.sync()
            self._synced = True

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
