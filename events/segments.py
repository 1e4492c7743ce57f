"""Segment files: their names, finding a position in them, and reading durable lines from any process
(docs/design.md §2.5).

There is no index: a position is found by bisecting the segments' names, then byte offsets.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from typing import Final

from pmagent.events.disk import Disk, DiskFile, RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import LINE_BYTES_MAX, Tail
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import HeadReading, HeadSlot, read_head
from pmagent.events.storage import CHUNK_BYTES

SUFFIX: Final = ".jsonl"
SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""A segment that holds so much is followed by a new one (docs/design.md §2.5)."""
_NAME: Final = re.compile(r"([0-9]{20})\.jsonl")
_START: Final = re.compile(rb'\{"position":([1-9][0-9]{0,18}),"batch":([1-9][0-9]{0,18}),')
_BISECT_BYTES: Final = 64 * 1024
_LINE_BYTES: Final = 4096
"""Most lines are shorter: so much is read first where one line is wanted."""
_POLL_SECONDS: Final = 0.004
"""How often a waiting reader looks at HEAD: a look is one small pread."""


def segment_name(first: int) -> str:
    """The file name of the segment whose first event is at position ``first``."""
    return f"{first:020d}{SUFFIX}"


def segment_firsts(disk: Disk, folder: str) -> list[int]:
    """First positions of the segments in ``folder``, ascending."""
    return firsts_of(disk.names(folder))


def firsts_of(names: list[str]) -> list[int]:
    """First positions of the segments among a folder's ``names``, which are sorted."""
    return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]


def no_log(folder: str) -> NotFound:
    """The error for a folder without a log."""
    return NotFound(f"there is no log in {folder}", "pmagent init makes a workspace, pmagent up starts its log")


def line_start(line: bytes) -> tuple[int, int] | None:
    """Position and batch that a line claims for itself; None when it does not begin like a line."""
    match = _START.match(line)
    return (int(match[1]), int(match[2])) if match else None


def last_lines(file: DiskFile) -> tuple[bytes, bytes]:
    """The last two whole lines of a file, without their newlines; ``b""`` for each that there is not."""
    end = file.size()
    taken = b""
    while end > 0 and len(taken) <= 3 * LINE_BYTES_MAX:  # two lines, and what has no end behind them
        start = max(0, end - _BISECT_BYTES)
        taken = file.read_at(start, end - start) + taken
        end = start
        lines = taken.rsplit(b"\n", 3)[:-1]
        if len(lines) > 2 or (start == 0 and lines):
            return (lines[-2] if len(lines) > 1 else b""), lines[-1]
    return b"", b""


def first_line(file: DiskFile) -> bytes:
    """The first line of a file, newline included; ``b""`` when it has no end."""
    size = _LINE_BYTES
    while True:
        data = file.read_at(0, size)
        end = data.find(b"\n") + 1
        if end or len(data) < size or size >= LINE_BYTES_MAX:
            return data[:end]
        size *= 16


class SegmentReader:
    """Reads the log in ``folder`` up to HEAD. Never writes or repairs anything, so any number of them may run.

    Raises NotFound when there is no log, and for each reading after it was removed or replaced; CorruptLog when there
    are segments, but no HEAD.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._head_path = f"{folder}/{HEAD_NAME}"
        try:
            self._head = disk.open(self._head_path)
        except FileNotFoundError:
            if any(name.endswith(SUFFIX) for name in disk.names(folder)):
                raise CorruptLog(HEAD_NAME, 0, 0, "it is missing, so it is unknown what was durable") from None
            raise no_log(folder) from None
        except NotADirectoryError:
            raise no_log(folder) from None
        self._head_is = self._head.status()[:2]
        self.reads_files = isinstance(disk, RealDisk)
        self._firsts: list[int] = []
        self._open: dict[int, DiskFile] = {}
        self._next: tuple[int, int, int] = (0, 0, 0)  # position, segment's first, byte offset: where reading goes on

    def head(self) -> HeadReading:
        """HEAD as it is now."""
        return read_head(self._head)

    def log_id(self) -> str:
        """See LogReader: as HEAD says."""
        return self._newest().log_id

    def tail(self) -> Tail:
        """See StorageReader. Raises CorruptLog when both slots of HEAD are damaged, NotFound when the log was removed
        or replaced meanwhile."""
        return self._newest().tail()

    def _newest(self) -> HeadSlot:
        status = self._disk.status(self._head_path)
        if status is None or status[:2] != self._head_is:
            what = "removed" if status is None else "replaced"
            raise NotFound(f"{self._head_path} was {what} while the log was being read", "look where the log is now")
        newest = self.head().newest
        if newest is None:
            raise CorruptLog(HEAD_NAME, 0, 0, "both slots are damaged, so it is unknown what was durable")
        return newest

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        if position < 1:
            raise ValueError("positions start at 1")
        end = self.tail().position
        if position > end:
            return b""
        first, offset = self.locate(position)
        chunk = self._whole_lines(first, offset, bytes_max, position)
        count = chunk.count(b"\n")
        if position + count - 1 > end:
            chunk = _first_lines(chunk, end - position + 1)
            count = end - position + 1
        self._next = (position + count, first, offset + len(chunk))
        return chunk

    def location(self, position: int) -> tuple[str, int]:
        """See StorageReader: the segment's name and the byte offset in it."""
        try:
            first, offset = self.locate(position)
        except CorruptLog as error:
            return error.file, error.offset
        return segment_name(first), offset

    def changes(self, position: int, seconds: float) -> bool:
        """See StorageReader."""
        end = time.monotonic() + seconds
        while self.tail().position <= position:
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, left))
        return True

    def locate(self, position: int) -> tuple[int, int]:
        """The segment (its first position) and the byte offset in it where the line of ``position`` begins.

        Raises CorruptLog when no line there claims that position.
        """
        if self._next[0] == position:
            _, first, offset = self._next
            if offset < self.file(first).size():
                return first, offset
        if not self._firsts or position > self._firsts[-1]:
            self._firsts = segment_firsts(self._disk, self._folder)
        first = self._firsts[index - 1] if (index := bisect_right(self._firsts, position)) else 0
        if first == 0:
            raise CorruptLog(segment_name(1), 0, position, "the segment that holds it is missing")
        return first, self._bisect(first, position)

    def file(self, first: int) -> DiskFile:
        """The open segment file; at most four stay open."""
        file = self._open.get(first)
        if file is None:
            while len(self._open) >= 4:
                self._open.pop(next(iter(self._open))).close()
            try:
                file = self._disk.open(f"{self._folder}/{segment_name(first)}")
            except FileNotFoundError:
                raise CorruptLog(segment_name(first), 0, first, "the segment is missing") from None
            self._open[first] = file
        return file

    def close(self) -> None:
        """Close all files."""
        self._head.close()
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _bisect(self, first: int, position: int) -> int:
        """Byte offset of the line of ``position``; the lines between low and high still hold it."""
        if position == first:
            return 0
        file = self.file(first)
        low, high = 0, file.size()
        while high - low > _BISECT_BYTES:
            middle = (low + high) // 2
            found = _first_line_after(file, middle, high)
            # Where no line begins, what is searched lies before: in a batch being written, in a torn tail, or damaged.
            if found is not None and 0 < found[1] <= position:
                low = found[0]
            else:
                high = middle
        data = file.read_at(low, high - low + LINE_BYTES_MAX)
        claim = line_start(data[:64])
        if claim is None:
            return self._count(file, first, position)
        offset = data.find(b'\n{"position":%d,' % position) + 1 if claim[0] != position else 0
        if claim[0] + data.count(b"\n", 0, offset) == position:  # so many lines lie between, whatever is in them
            return low + offset
        return self._count(file, first, position)

    def _count(self, file: DiskFile, first: int, position: int) -> int:
        """The same by counting lines: a damaged line must not lead away from the intact ones before it."""
        size = file.size()
        at, line, start = 0, first, 0
        while at < size:
            data = file.read_at(at, CHUNK_BYTES)
            cut = 0
            while line < position and (cut := data.find(b"\n", cut) + 1):
                line += 1
                start = at + cut
            if line == position:
                break
            at += len(data)
        claim = line_start(file.read_at(start, 64))
        if line != position or claim is None or claim[0] != position:
            raise CorruptLog(segment_name(first), start, position, "its line is not where it must be")
        return start

    def _whole_lines(self, first: int, offset: int, bytes_max: int, position: int) -> bytes:
        file = self.file(first)
        size = max(bytes_max, _LINE_BYTES)
        while True:
            chunk = file.read_at(offset, size)
            end = chunk.rfind(b"\n", 0, bytes_max) + 1 or chunk.find(b"\n") + 1
            if end:
                return chunk[:end]
            if len(chunk) < size or size >= LINE_BYTES_MAX:
                raise CorruptLog(segment_name(first), offset, position, "the line has no end")
            size = min(8 * size, LINE_BYTES_MAX)


def _first_line_after(file: DiskFile, offset: int, end: int) -> tuple[int, int] | None:
    """Start and claimed position of the first line that begins behind ``offset``; claim 0 if none begins there."""
    size = _BISECT_BYTES
    while True:
        data = file.read_at(offset, size)
        cut = data.find(b"\n") + 1
        if cut and (cut + 64 <= len(data) or len(data) < size):
            break
        if len(data) < size or size > 2 * LINE_BYTES_MAX:
            return None
        size *= 4
    start = offset + cut
    if start >= end:
        return None
    claim = line_start(data[cut : cut + 64])
    return start, claim[0] if claim else 0


def _first_lines(chunk: bytes, count: int) -> bytes:
    end = 0
    for _ in range(count):
        end = chunk.index(b"\n", end) + 1
    return chunk[:end]
