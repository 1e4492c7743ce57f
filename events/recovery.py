"""Opening a log: telling a torn tail from corruption (docs/design.md §2.3; CTRL, FAST '18).

A torn tail is what a crash leaves of a batch that was never acknowledged: it may be cut. Corruption is damage to
what was durable: it is never cut, and the log does not open.

Rules, in this order, for the first bad line of the newest segment:
  1. HEAD covers its position                                → corruption
  2. a valid, linked line of a later batch stands behind it  → corruption (a later batch is written only after
     the earlier one was durable)
  3. it is a whole line that claims another position         → corruption (a torn write begins with the line that
     belongs there, or with part of it)
  4. else                                                    → torn tail
Anything wrong in or between older segments is corruption: only the newest segment is ever written.

A crash of the process alone leaves writes in memory, not on the disk: names and bytes that HEAD does not cover are
made durable here (bytes are written again, for a sync that failed before may have forgotten them).
"""

from __future__ import annotations

import re
from binascii import unhexlify
from contextlib import closing
from itertools import pairwise
from typing import Final

import msgspec

from pmagent.events.damage import belongs_elsewhere, claimed_sum, created_log_id, follows, later_batch, linked, sum_of
from pmagent.events.disk import Disk, DiskFile
from pmagent.events.errors import CorruptLog
from pmagent.events.event import LogRecovered, Tail
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import HeadSlot
from pmagent.events.line import ChainChecker, decode_line
from pmagent.events.segments import SegmentReader, first_line, last_lines, line_start, segment_firsts, segment_name
from pmagent.events.storage import CHUNK_BYTES

_WINDOW: Final = 4 * CHUNK_BYTES
_DIGITS: Final = re.compile("[0-9]+")


class Opening(msgspec.Struct, frozen=True):
    """The state found at opening: the durable tail, the newest segment (0: none yet), its length, and the cut part."""

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
    if firsts[-1] < head.segment:
        reason = f"the segment is missing: {HEAD_NAME} notes it"
        raise CorruptLog(segment_name(head.segment), 0, head.segment, reason)
    before = check_seams(disk, folder, firsts, head)
    newest = firsts[-1]
    if len(firsts) > 1:
        disk.seal(f"{folder}/{segment_name(firsts[-2])}")  # a crash at the roll may have left it writable
    name = segment_name(newest)
    with closing(disk.open(f"{folder}/{name}")) as file:
        scan = _scan(file, before, head)
    _judge(name, scan, before, head)
    with closing(_open_for_writing(disk, folder, name, scan)) as file:
        recovered = _settle(disk, folder, name, file, scan, head)
    return Opening(scan.tail, newest, scan.intact, recovered)


def check_seams(disk: Disk, folder: str, firsts: list[int], head: HeadSlot) -> Tail:
    """Check that the older segments end where the next ones begin, that this is HEAD's log, and HEAD's sum if it
    notes one of their events; returns the tail before the newest segment.

    Raises CorruptLog. The insides of older segments are left to ``log verify``.
    """
    if firsts[0] != 1:
        raise CorruptLog(segment_name(1), 0, 1, "the first segment is missing")
    tail = Tail()
    for first, following in pairwise(firsts):
        tail = _check_ends(disk, folder, first, following, tail, head)
    if 0 < head.position < tail.position:
        with closing(SegmentReader(disk, folder)) as reader:
            noted = reader.read(head.position, 1)
        if sum_of(noted, 0) != head.sum:
            raise _exchanged(segment_name(max(first for first in firsts if first <= head.position)), head)
    return tail


def _check_ends(disk: Disk, folder: str, first: int, following: int, before: Tail, head: HeadSlot) -> Tail:
    """The tail at the end of an older segment, which must be the event before ``following``, and whose first line must
    follow ``before``."""
    name = segment_name(first)
    with closing(disk.open(f"{folder}/{name}")) as file:
        size = file.size()
        ends = size > 0 and file.read_at(size - 1, 1) == b"\n"
        beginning = first_line(file)
        previous, line = last_lines(file)
    if not follows(unhexlify(before.sum), beginning[:-1]):
        raise CorruptLog(name, 0, first, "its first line does not follow the segment before")
    if first == 1:
        _check_first(beginning, head)
    at = max(0, size - len(line) - 1)
    claim = line_start(line)
    if not ends or claim is None or claim[0] != following - 1:
        raise CorruptLog(name, at, following - 1, f"it must end with position {following - 1}")
    if previous and not linked(previous, line):
        raise CorruptLog(name, at, following - 1, "its last line is damaged, or the line before")
    try:
        last = decode_line(line)
    except msgspec.DecodeError:
        raise CorruptLog(name, at, following - 1, "its last line is damaged") from None
    return Tail(last.position, last.batch, last.time, last.sum)


class _Scan(msgspec.Struct):
    """The contents of the newest segment (``size`` bytes): its ``intact`` bytes, up to ``tail``; the fault behind them
    ("": none), whether a line of another position stands there, and the batch behind that which proves that it
    was durable (0: none); and of the event that HEAD notes: its sum ("" if it is not here) and where its line ends."""

    tail: Tail
    size: int
    intact: int = 0
    fault: str = ""
    elsewhere: bool = False
    later: int = 0
    noted_sum: str = ""
    noted_end: int = 0


def _scan(file: DiskFile, before: Tail, head: HeadSlot) -> _Scan:
    checker = ChainChecker(before)
    scan = _Scan(before, file.size(), noted_sum=before.sum if head.position == before.position else "")
    while scan.intact < scan.size and not scan.fault:
        chunk = file.read_at(scan.intact, _WINDOW)
        part = chunk[: chunk.rfind(b"\n") + 1]
        if not part:
            scan.fault = "the last line has no end"
            break
        start = checker.tail.position
        found = checker.check(part)
        whole = part[: found.offset] if found else part
        if start == 0 and whole:
            _check_first(whole, head)
        if start < head.position <= checker.tail.position:
            *_, noted, behind = whole.split(b"\n", head.position - start)
            scan.noted_sum = claimed_sum(noted)
            scan.noted_end = scan.intact + len(whole) - len(behind)
        scan.intact += len(whole)
        scan.fault = found.reason if found else ""
    scan.tail = checker.tail
    if scan.fault:
        scan.elsewhere = belongs_elsewhere(file, scan.intact, scan.tail.position + 1)
        scan.later = later_batch(file, scan.intact, scan.size, scan.tail)
    return scan


def _judge(name: str, scan: _Scan, before: Tail, head: HeadSlot) -> None:
    """Raises CorruptLog when what is wrong with the newest segment is no torn tail."""
    position = scan.tail.position
    if head.position > position:
        missing = f"{head.position - position} durable events are missing"
        raise CorruptLog(name, scan.intact, position + 1, f"{scan.fault}; it was durable" if scan.fault else missing)
    if scan.later:
        raise CorruptLog(name, scan.intact, position + 1, f"{scan.fault}; batch {scan.later} behind it is intact")
    if scan.elsewhere:
        raise CorruptLog(name, scan.intact, position + 1, f"{scan.fault}; the line there is of another position")
    if head.position >= before.position and head.position and scan.noted_sum != head.sum:
        raise _exchanged(name, head)


def _open_for_writing(disk: Disk, folder: str, name: str, scan: _Scan) -> DiskFile:
    try:
        return disk.open(f"{folder}/{name}", write=True)
    except PermissionError:
        following = scan.tail.position + 1
        reason = f"the segment is missing: {name} is sealed, so there was one after it"
        raise CorruptLog(segment_name(following), 0, following, reason) from None


def _settle(disk: Disk, folder: str, name: str, file: DiskFile, scan: _Scan, head: HeadSlot) -> LogRecovered | None:
    """Cut what is torn, and make the rest durable."""
    if scan.fault:
        recovered: LogRecovered | None = _cut(disk, folder, file, name, scan.intact, scan.size, scan.fault)
    else:
        recovered = _cut_before(disk, folder, name, scan.size)
    if scan.tail.position > head.position:
        _write_again(file, scan.noted_end, scan.intact)
    return recovered


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


def _cut(disk: Disk, folder: str, file: DiskFile, name: str, offset: int, size: int, reason: str) -> LogRecovered:
    """Copy the torn bytes aside, cut them off, and make both durable."""
    kept = _kept(disk, folder, name, offset)
    kept_as = next((other for other in kept if _is_copy(disk, f"{folder}/{other}", file, offset, size)), "")
    if not kept_as:
        kept_as = f"{name}.torn-{offset}-{len(kept) + 1}"
        _keep(disk, f"{folder}/{kept_as}", file, offset, size)
    disk.sync_folder(folder)
    file.truncate(offset)
    file.sync()
    return LogRecovered(segment=name, offset=offset, cut_bytes=size - offset, kept_as=kept_as, reason=reason)


def _keep(disk: Disk, path: str, file: DiskFile, offset: int, size: int) -> None:
    """Copy ``[offset, size)``, durable but for its name. Part of a copy never has the name, and stays nowhere: on a
    full disk each start would leave another one."""
    aside = disk.open(f"{path}.tmp", create=True)
    try:
        at = offset
        while at < size:
            data = file.read_at(at, min(_WINDOW, size - at))
            aside.append(data)
            at += len(data)
        aside.sync()
    except OSError:
        disk.unlink(f"{path}.tmp")
        raise
    finally:
        aside.close()
    disk.rename(f"{path}.tmp", path)


def _is_copy(disk: Disk, path: str, file: DiskFile, offset: int, size: int) -> bool:
    """Whether ``path`` holds ``[offset, size)``, as an opening that ended before its cut left it; durable then."""
    with closing(disk.open(path)) as aside:
        if aside.size() != size - offset:
            return False
        for at in range(offset, size, _WINDOW):
            length = min(_WINDOW, size - at)
            if aside.read_at(at - offset, length) != file.read_at(at, length):
                return False
        aside.sync()
        return True


def _cut_before(disk: Disk, folder: str, name: str, size: int) -> LogRecovered | None:
    """The cut of an earlier opening at this very end, if it crashed before it could append log.recovered."""
    kept = _kept(disk, folder, name, size)
    if not kept:
        return None
    with closing(disk.open(f"{folder}/{kept[-1]}")) as file:
        cut_bytes = file.size()
    return LogRecovered(
        segment=name, offset=size, cut_bytes=cut_bytes, kept_as=kept[-1], reason="cut by an opening that crashed"
    )


def _kept(disk: Disk, folder: str, name: str, offset: int) -> list[str]:
    """The files with bytes that were cut from a segment at ``offset``, in the order of their making."""
    start = f"{name}.torn-{offset}-"
    others = [other.removeprefix(start) for other in disk.names(folder) if other.startswith(start)]
    found = [(int(number), start + number) for number in others if _DIGITS.fullmatch(number)]
    return [other for _, other in sorted(found)]
