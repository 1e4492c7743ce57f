"""Segment files: their names, finding a position in them, and reading durable lines from any process (DESIGN §2).

There is no index: a position is found by bisecting the segments' names, then byte offsets.
"""

from __future__ import annotations

import re
from typing import Final

from events.disk import Disk, DiskFile
from events.errors import CorruptLog, NotFound
from events.event import LINE_BYTES_MAX, Tail
from events.head import NAME as HEAD_NAME
from events.head import SLOT_BYTES, HeadReading, decode_head
from events.storage import CHUNK_BYTES

SUFFIX: Final = ".jsonl"
_NAME: Final = re.compile(r"([0-9]{20})\.jsonl")
_START: Final = re.compile(rb'\{"position":([1-9][0-9]{0,18}),"batch":([1-9][0-9]{0,18}),')
_BISECT_BYTES: Final = 64 * 1024


def segment_name(first: int) -> str:
    """The file name of the segment whose first event is at position ``first``."""
    return f"{first:020d}{SUFFIX}"


def segment_firsts(disk: Disk, folder: str) -> list[int]:
    """First positions of the segments in ``folder``, ascending."""
    return [int(match[1]) for name in disk.names(folder) if (match := _NAME.fullmatch(name))]


def line_start(line: bytes) -> tuple[int, int] | None:
    """Position and batch that a line claims for itself; None when it does not begin like a line."""
    match = _START.match(line)
    return (int(match[1]), int(match[2])) if match else None


def last_line(file: DiskFile) -> bytes:
    """The last whole line of a file, without its newline; ``b""`` when there is none."""
    end = file.size()
    taken = b""
    while end > 0 and len(taken) <= LINE_BYTES_MAX + _BISECT_BYTES:
        start = max(0, end - _BISECT_BYTES)
        taken = file.read_at(start, end - start) + taken
        end = start
        whole = taken[: taken.rfind(b"\n") + 1]
        cut = whole.rfind(b"\n", 0, len(whole) - 1)
        if whole and (cut >= 0 or start == 0):
            return whole[cut + 1 : -1]
    return b""


class SegmentReader:
    """Reads the log in ``folder`` up to HEAD. Never writes or repairs anything, so any number of them may run.

    Raises NotFound when there is no log.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        try:
            self._head = disk.open(f"{folder}/{HEAD_NAME}")
        except FileNotFoundError:
            raise NotFound(f"there is no log in {folder}", "pmagent init makes a workspace, pmagent up starts its log") from None
        self._firsts: list[int] = []
        self._open: dict[int, DiskFile] = {}
        self._next: tuple[int, int, int] = (0, 0, 0)  # position, segment's first, byte offset: where reading goes on

    def head(self) -> HeadReading:
        """HEAD as it is now."""
        return decode_head(self._head.read_at(0, 2 * SLOT_BYTES + 1))

    def log_id(self) -> str:
        """The log's id, as HEAD says. Raises CorruptLog when HEAD is damaged."""
        newest = self.head().newest
        if newest is None:
            raise CorruptLog(HEAD_NAME, 0, 0, "both slots are damaged")
        return newest.log_id

    def tail(self) -> Tail:
        """See StorageReader. Raises CorruptLog when both slots of HEAD are damaged."""
        newest = self.head().newest
        if newest is None:
            newest = self.head().newest  # both slots may be met half-written only one after the other: look again
        if newest is None:
            raise CorruptLog(HEAD_NAME, 0, 0, "both slots are damaged")
        return newest.tail()

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
        first = max((first for first in self._firsts if first <= position), default=0)
        if first == 0:
            raise CorruptLog(segment_name(1), 0, position, "the segment that holds it is missing")
        return first, self._bisect(first, position)

    def file(self, first: int) -> DiskFile:
        """The open segment file; at most four stay open."""
        file = self._open.get(first)
        if file is None:
            while len(self._open) >= 4:
                self._open.pop(next(iter(self._open))).close()
            file = self._open[first] = self._disk.open(f"{self._folder}/{segment_name(first)}")
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
            if found is None:
                high = middle
                continue
            start, claim = found
            if claim == 0:
                raise CorruptLog(segment_name(first), start, position, "no line begins here")
            if claim <= position:
                low = start
            else:
                high = middle
        data = file.read_at(low, high - low + LINE_BYTES_MAX)
        offset = 0
        while offset < len(data):
            claim_here = line_start(data[offset : offset + 64])
            if claim_here is None:
                break
            if claim_here[0] == position:
                return low + offset
            offset = data.find(b"\n", offset) + 1
            if offset == 0:
                break
        raise CorruptLog(segment_name(first), low, position, "the line is not where it must be")

    def _whole_lines(self, first: int, offset: int, bytes_max: int, position: int) -> bytes:
        file = self.file(first)
        chunk = file.read_at(offset, bytes_max)
        end = chunk.rfind(b"\n") + 1
        if end == 0:
            chunk = file.read_at(offset, LINE_BYTES_MAX)
            end = chunk.find(b"\n") + 1
        if end == 0:
            raise CorruptLog(segment_name(first), offset, position, "the line has no end")
        return chunk[:end]


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
