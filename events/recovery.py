"""Opening a log: telling a torn tail from corruption (DESIGN §2, opening; CTRL, FAST '18).

A torn tail is what a crash leaves of a batch that was never acknowledged: it may be cut. Corruption is damage to
what was durable: it is never cut, and the log does not open.

Rules, in this order, for the first bad line of the newest segment:
  1. HEAD covers its position                                → corruption
  2. a valid, linked line of a later batch stands behind it  → corruption (a later batch is written only after
     the earlier one was durable)
  3. else                                                    → torn tail
Anything wrong in or between older segments is corruption: only the newest segment is ever written.
"""

from __future__ import annotations

from binascii import hexlify
from hashlib import sha256
from typing import Final

import msgspec

from events.disk import Disk, DiskFile
from events.errors import CorruptLog
from events.event import LINE_BYTES_MAX, LogCreated, LogRecovered, Tail
from events.head import NAME as HEAD_NAME
from events.head import HeadSlot
from events.line import TAIL_BYTES, ChainChecker, decode_line
from events.segments import last_line, line_start, segment_firsts, segment_name
from events.storage import CHUNK_BYTES

_WINDOW: Final = 4 * CHUNK_BYTES


class Opening(msgspec.Struct, frozen=True):
    """What opening found: the durable tail, the newest segment (0: none yet), its length, and what was cut."""

    tail: Tail
    newest: int
    size: int
    recovered: LogRecovered | None


def open_segments(disk: Disk, folder: str, head: HeadSlot) -> Opening:
    """Check the log in ``folder`` against ``head`` and cut a torn tail. Raises CorruptLog; OSError of the disk."""
    for name in disk.names(folder):
        if name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")
    firsts = segment_firsts(disk, folder)
    if not firsts:
        if head.position:
            raise CorruptLog(segment_name(1), 0, 1, f"no segment is left; {head.position} events were durable")
        return Opening(Tail(), 0, 0, None)
    before = check_seams(disk, folder, firsts)
    newest = firsts[-1]
    file = disk.open(f"{folder}/{segment_name(newest)}", write=True)
    try:
        return _open_newest(disk, folder, file, newest, before, head)
    finally:
        file.close()


def check_seams(disk: Disk, folder: str, firsts: list[int]) -> Tail:
    """Check that the older segments end where the next ones begin; returns the tail before the newest segment.

    Raises CorruptLog. What stands inside older segments is for ``log verify``.
    """
    if firsts[0] != 1:
        raise CorruptLog(segment_name(1), 0, 1, "the first segment is missing")
    tail = Tail()
    for first, following in zip(firsts, firsts[1:], strict=False):
        name = segment_name(first)
        file = disk.open(f"{folder}/{name}")
        try:
            size = file.size()
            ends = size > 0 and file.read_at(size - 1, 1) == b"\n"
            line = last_line(file)
        finally:
            file.close()
        claim = line_start(line)
        if not ends or claim is None or claim[0] != following - 1:
            raise CorruptLog(name, max(0, size - len(line) - 1), following - 1, f"it must end with position {following - 1}")
        try:
            last = decode_line(line)
        except msgspec.DecodeError:
            raise CorruptLog(name, max(0, size - len(line) - 1), following - 1, "its last line is damaged") from None
        tail = Tail(last.position, last.batch, last.time, last.sum)
    return tail


def _open_newest(
    disk: Disk, folder: str, file: DiskFile, newest: int, before: Tail, head: HeadSlot
) -> Opening:
    name = segment_name(newest)
    checker = ChainChecker(before)
    size = file.size()
    offset = 0
    fault = ""
    head_sum = before.sum if head.position == before.position else ""
    while offset < size:
        chunk = file.read_at(offset, _WINDOW)
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            fault = "the last line has no end"
            break
        part = chunk[:end]
        start_position = checker.tail.position
        found = checker.check(part)
        intact = part[: found.offset] if found else part
        if start_position == 0 and intact:
            _check_first(intact, name, head)
        if start_position < head.position <= checker.tail.position:
            head_sum = _sum_of(intact, head.position - start_position - 1)
        offset += len(intact)
        if found is not None:
            fault = found.reason
            break
    tail = checker.tail
    if fault:
        if head.position > tail.position:
            raise CorruptLog(name, offset, tail.position + 1, f"{fault}; it was durable")
        later = _later_batch(file, offset, size, tail.batch)
        if later:
            raise CorruptLog(name, offset, tail.position + 1, f"{fault}; batch {later} behind it is intact")
    elif head.position > tail.position:
        raise CorruptLog(name, size, tail.position + 1, f"{head.position - tail.position} durable events are missing")
    if head.position >= before.position and head.position and head_sum != head.sum:
        raise CorruptLog(name, 0, head.position, "its sum is not the one that HEAD notes: lines were exchanged")
    recovered = _cut(disk, folder, file, name, offset, size, fault) if fault else None
    if tail.position > head.position:
        file.sync()  # whole lines that were not acknowledged: they stay, and become durable now
    return Opening(tail, newest, offset, recovered)


def _check_first(lines: bytes, name: str, head: HeadSlot) -> None:
    first = decode_line(lines[: lines.index(b"\n")])
    try:
        created = msgspec.json.decode(first.data, type=LogCreated)
    except msgspec.DecodeError:
        created = None
    if first.type != "log.created" or created is None:
        raise CorruptLog(name, 0, 1, "the first event is not log.created")
    if created.log_id != head.log_id:
        raise CorruptLog(name, 0, 1, f"this is log {created.log_id}; {HEAD_NAME} belongs to log {head.log_id}")


def _sum_of(lines: bytes, index: int) -> str:
    line = lines.split(b"\n", index + 1)[index]
    return line[-TAIL_BYTES + 8 : -2].decode("ascii", "replace")


def _later_batch(file: DiskFile, offset: int, size: int, last_batch: int) -> int:
    """The batch of a valid linked line behind the bad one that proves it was durable; 0 when there is none.

    The bad line belongs to the last intact batch or to the next one; where it still says which, that is believed,
    for a mere claim to be of the earlier batch can only make us refuse more.
    """
    bad_batch = last_batch + 1
    previous: bytes | None = None
    held = b""
    at = offset
    while at < size or held:
        data = held + file.read_at(at, _WINDOW)
        at = min(size, at + _WINDOW)
        lines = data.split(b"\n")
        held = lines.pop()
        if len(held) > LINE_BYTES_MAX or at >= size:
            held = b""
        for line in lines:
            claim = line_start(line)
            if previous is None:
                if claim is not None and claim[1] == last_batch:
                    bad_batch = last_batch
            elif claim is not None and claim[1] > bad_batch and _linked(previous, line):
                return claim[1]
            previous = line
    return 0


def _linked(previous: bytes, line: bytes) -> bool:
    """Whether ``line`` is intact, taking the sum that ``previous`` claims as what precedes it."""
    claimed = previous[-TAIL_BYTES + 8 : -2]
    try:
        seed = bytes.fromhex(claimed.decode("ascii"))
    except (UnicodeDecodeError, ValueError):
        return False
    digest = sha256(seed + line[:-TAIL_BYTES]).digest()
    return line[-TAIL_BYTES:] == b',"sum":"%b"}' % hexlify(digest)


def _cut(disk: Disk, folder: str, file: DiskFile, name: str, offset: int, size: int, reason: str) -> LogRecovered:
    """Copy the torn bytes aside, cut them off, and make both durable."""
    taken = set(disk.names(folder))
    number = next(n for n in range(1, len(taken) + 2) if f"{name}.torn-{n}" not in taken)
    kept_as = f"{name}.torn-{number}"
    aside = disk.open(f"{folder}/{kept_as}", create=True)
    try:
        at = offset
        while at < size:
            data = file.read_at(at, _WINDOW)
            aside.append(data)
            at += len(data)
        aside.sync()
    finally:
        aside.close()
    disk.sync_folder(folder)
    file.truncate(offset)
    file.sync()
    return LogRecovered(segment=name, offset=offset, cut_bytes=size - offset, kept_as=kept_as, reason=reason)
