"""Opening a log: telling a torn tail from corruption (DESIGN §2, opening; CTRL, FAST '18).

A torn tail is what a crash leaves of a batch that was never acknowledged: it may be cut. Corruption is damage to
what was durable: it is never cut, and the log does not open.

Rules, in this order, for the first bad line of the newest segment:
  1. HEAD covers its position                                → corruption
  2. a valid, linked line of a later batch stands behind it  → corruption (a later batch is written only after
     the earlier one was durable)
  3. else                                                    → torn tail
Anything wrong in or between older segments is corruption: only the newest segment is ever written.

What a crash of the process alone left is in memory, not on the disk: names and bytes that HEAD does not cover are
made durable here (bytes are written again, for a sync that failed before may have forgotten them).
"""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Final

import msgspec

from events.disk import Disk, DiskFile
from events.errors import CorruptLog
from events.event import LINE_BYTES_MAX, LogCreated, LogRecovered, Tail
from events.head import NAME as HEAD_NAME
from events.head import HeadSlot
from events.line import TAIL_BYTES, ChainChecker, decode_line
from events.segments import SegmentReader, last_lines, line_start, segment_firsts, segment_name
from events.storage import CHUNK_BYTES

_WINDOW: Final = 4 * CHUNK_BYTES


class Opening(msgspec.Struct, frozen=True):
    """What opening found: the durable tail, the newest segment (0: none yet), its length, and what was cut."""

    tail: Tail
    newest: int
    size: int
    recovered: LogRecovered | None


def open_segments(disk: Disk, folder: str, head: HeadSlot) -> Opening:
    """Check the log in ``folder`` against ``head``, cut a torn tail, and make durable what stays.

    Raises CorruptLog; OSError of the disk.
    """
    for name in disk.names(folder):
        if name.endswith(".tmp"):
            disk.unlink(f"{folder}/{name}")
    firsts = segment_firsts(disk, folder)
    disk.sync_folder(folder)
    if not firsts:
        if head.position:
            raise CorruptLog(segment_name(1), 0, 1, f"no segment is left; {head.position} events were durable")
        return Opening(Tail(), 0, 0, None)
    before = check_seams(disk, folder, firsts, head)
    newest = firsts[-1]
    if len(firsts) > 1:
        disk.seal(f"{folder}/{segment_name(firsts[-2])}")  # a crash at the roll may have left it writable
    file = disk.open(f"{folder}/{segment_name(newest)}", write=True)
    try:
        return _open_newest(disk, folder, file, newest, before, head)
    finally:
        file.close()


def check_seams(disk: Disk, folder: str, firsts: list[int], head: HeadSlot) -> Tail:
    """Check that the older segments end where the next ones begin, that this is HEAD's log, and HEAD's sum if it
    notes one of their events; returns the tail before the newest segment.

    Raises CorruptLog. What stands inside older segments is for ``log verify``.
    """
    if firsts[0] != 1:
        raise CorruptLog(segment_name(1), 0, 1, "the first segment is missing")
    tail = Tail()
    for first, following in pairwise(firsts):
        tail = _segment_end(disk, folder, first, following)
    if len(firsts) > 1:
        reader = SegmentReader(disk, folder)
        try:
            first_line = reader.first_line()
            noted = reader.read(head.position, 1) if 0 < head.position < tail.position else b""
        finally:
            reader.close()
        _check_first(first_line, head)
        if noted and sum_of(noted, 0) != head.sum:
            raise _exchanged(segment_name(max(first for first in firsts if first <= head.position)), head)
    return tail


def _segment_end(disk: Disk, folder: str, first: int, following: int) -> Tail:
    """The tail at the end of an older segment, which must be the event before ``following``."""
    name = segment_name(first)
    file = disk.open(f"{folder}/{name}")
    try:
        size = file.size()
        ends = size > 0 and file.read_at(size - 1, 1) == b"\n"
        previous, line = last_lines(file)
    finally:
        file.close()
    at = max(0, size - len(line) - 1)
    claim = line_start(line)
    if not ends or claim is None or claim[0] != following - 1:
        raise CorruptLog(name, at, following - 1, f"it must end with position {following - 1}")
    if previous and not _linked(previous, line):
        raise CorruptLog(name, at, following - 1, "its last line is damaged, or the line before")
    try:
        last = decode_line(line)
    except msgspec.DecodeError:
        raise CorruptLog(name, at, following - 1, "its last line is damaged") from None
    return Tail(last.position, last.batch, last.time, last.sum)


class _Scan(msgspec.Struct):
    """What the newest segment holds: its intact part (``size`` bytes, up to ``tail``), what is wrong behind it (""
    for nothing), and for the event that HEAD notes: its sum ("" if it is not here) and where its line ends."""

    tail: Tail
    size: int
    fault: str
    noted_sum: str
    noted_end: int


def _scan(file: DiskFile, before: Tail, head: HeadSlot) -> _Scan:
    checker = ChainChecker(before)
    scan = _Scan(before, 0, "", before.sum if head.position == before.position else "", 0)
    size = file.size()
    while scan.size < size and not scan.fault:
        chunk = file.read_at(scan.size, _WINDOW)
        part = chunk[: chunk.rfind(b"\n") + 1]
        if not part:
            scan.fault = "the last line has no end"
            break
        start = checker.tail.position
        found = checker.check(part)
        intact = part[: found.offset] if found else part
        if start == 0 and intact:
            _check_first(intact, head)
        if start < head.position <= checker.tail.position:
            scan.noted_sum = sum_of(intact, head.position - start - 1)
            scan.noted_end = scan.size + sum(len(line) + 1 for line in intact.split(b"\n")[: head.position - start])
        scan.size += len(intact)
        scan.fault = found.reason if found else ""
    scan.tail = checker.tail
    return scan


def _open_newest(
    disk: Disk, folder: str, file: DiskFile, newest: int, before: Tail, head: HeadSlot
) -> Opening:
    name = segment_name(newest)
    size = file.size()
    scan = _scan(file, before, head)
    tail, fault = scan.tail, scan.fault
    if head.position > tail.position:
        reason = f"{fault}; it was durable" if fault else f"{head.position - tail.position} durable events are missing"
        raise CorruptLog(name, scan.size, tail.position + 1, reason)
    if head.position >= before.position and head.position and scan.noted_sum != head.sum:
        raise _exchanged(name, head)
    recovered = None
    if fault:
        later = later_batch(file, scan.size, size, tail)
        if later:
            raise CorruptLog(name, scan.size, tail.position + 1, f"{fault}; batch {later} behind it is intact")
        recovered = _cut(disk, folder, file, name, scan.size, size, fault)
    else:
        recovered = _cut_before(disk, folder, name, size)
    if tail.position > head.position:
        _write_again(file, scan.noted_end, scan.size)
    return Opening(tail, newest, scan.size, recovered)


def _exchanged(name: str, head: HeadSlot) -> CorruptLog:
    return CorruptLog(name, 0, head.position, f"its sum is not the one that {HEAD_NAME} notes: lines were exchanged")


def _write_again(file: DiskFile, start: int, end: int) -> None:
    """Make ``[start, end)`` durable: whole lines of which nobody knows whether they are."""
    at = start
    while at < end:
        data = file.read_at(at, min(_WINDOW, end - at))
        file.write_at(at, data)
        at += len(data)
    file.sync()


def _check_first(lines: bytes, head: HeadSlot) -> None:
    created_id = created_log_id(lines)
    if created_id is None:
        raise CorruptLog(segment_name(1), 0, 1, "the first event is not log.created")
    if created_id != head.log_id:
        raise CorruptLog(segment_name(1), 0, 1, f"this is log {created_id}; {HEAD_NAME} belongs to log {head.log_id}")


def created_log_id(lines: bytes) -> str | None:
    """The log's id, from the first line of ``lines``; None when that is no log.created."""
    try:
        first = decode_line(lines[: lines.index(b"\n")])
        return msgspec.json.decode(first.data, type=LogCreated).log_id if first.type == "log.created" else None
    except ValueError:  # msgspec's are ValueErrors too
        return None


def sum_of(lines: bytes, index: int) -> str:
    """The sum that line number ``index`` (from 0) of ``lines`` claims."""
    line = lines.split(b"\n", index + 1)[index]
    return line[-TAIL_BYTES + 8 : -2].decode("ascii", "replace")


def later_batch(file: DiskFile, offset: int, size: int, tail: Tail) -> int:
    """The batch of a valid linked line behind the bad one at ``offset`` that proves it was durable; 0: there is none.

    ``tail`` is what precedes the bad line, which belongs to the same batch or to the next one. It is taken to be of
    the same when it says so, when it would be intact if it said so, or when an intact line of that batch follows:
    to be wrong there can only make us refuse more.
    """
    bad_batch = tail.batch + 1
    previous: bytes | None = None
    for line in _lines(file, offset, size):
        claim = line_start(line)
        if previous is None:
            if (claim is not None and claim[1] == tail.batch) or _fits(line, tail):
                bad_batch = tail.batch
        elif claim is not None and claim[1] >= tail.batch and _linked(previous, line):
            if claim[1] > bad_batch:
                return claim[1]
            if claim[1] == tail.batch:
                bad_batch = tail.batch
        previous = line
    return 0


def _lines(file: DiskFile, offset: int, size: int) -> Iterator[bytes]:
    """The ended lines from ``offset`` to ``size``; what is longer than any line can be comes in pieces."""
    held = b""
    at = offset
    while at < size:
        lines = (held + file.read_at(at, min(_WINDOW, size - at))).split(b"\n")
        at = min(size, at + _WINDOW)
        held = lines.pop()
        if len(held) > LINE_BYTES_MAX:
            lines.append(held)
            held = b""
        yield from lines


def _fits(line: bytes, tail: Tail) -> bool:
    """Whether ``line`` is intact but for its beginning, if that says the next position and the same batch."""
    head = b'{"position":%d,"batch":%d,' % (tail.position + 1, tail.batch)
    return _tail_fits(unhexlify(tail.sum), head + line[len(head) :])


def _linked(previous: bytes, line: bytes) -> bool:
    """Whether ``line`` is intact, taking the sum that ``previous`` claims as what precedes it."""
    try:
        return _tail_fits(unhexlify(previous[-TAIL_BYTES + 8 : -2]), line)
    except ValueError:
        return False


def _tail_fits(seed: bytes, line: bytes) -> bool:
    digest = sha256(seed + line[:-TAIL_BYTES]).digest()
    return line[-TAIL_BYTES:] == b',"sum":"%b"}' % hexlify(digest)


def _cut(disk: Disk, folder: str, file: DiskFile, name: str, offset: int, size: int, reason: str) -> LogRecovered:
    """Copy the torn bytes aside, cut them off, and make both durable."""
    kept_as = f"{name}.torn-{offset}-{len(_kept(disk, folder, name, offset)) + 1}"
    aside = disk.open(f"{folder}/{kept_as}", create=True)
    try:
        at = offset
        while at < size:
            data = file.read_at(at, min(_WINDOW, size - at))
            aside.append(data)
            at += len(data)
        aside.sync()
    finally:
        aside.close()
    disk.sync_folder(folder)
    file.truncate(offset)
    file.sync()
    return LogRecovered(segment=name, offset=offset, cut_bytes=size - offset, kept_as=kept_as, reason=reason)


def _cut_before(disk: Disk, folder: str, name: str, size: int) -> LogRecovered | None:
    """What an earlier opening cut at this very end: it crashed before it could append log.recovered."""
    kept = _kept(disk, folder, name, size)
    if not kept:
        return None
    file = disk.open(f"{folder}/{kept[-1]}")
    try:
        cut_bytes = file.size()
    finally:
        file.close()
    return LogRecovered(
        segment=name, offset=size, cut_bytes=cut_bytes, kept_as=kept[-1], reason="cut by an opening that crashed"
    )


def _kept(disk: Disk, folder: str, name: str, offset: int) -> list[str]:
    """The files with bytes that were cut from a segment at ``offset``, in the order of their making."""
    pattern = re.compile(rf"{re.escape(name)}\.torn-{offset}-([0-9]+)")
    found = [(int(match[1]), match[0]) for other in disk.names(folder) if (match := pattern.fullmatch(other))]
    return [other for _, other in sorted(found)]
