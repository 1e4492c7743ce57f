"""What the log's files are like, without reading all of them: HEAD, the segments, the snapshot; blocking."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from actors.snapshot import decode_snapshot
from events.disk import RealDisk
from events.errors import PmagentError
from events.event import Tail
from events.head import NAME as HEAD_NAME
from events.head import SLOT_BYTES, HeadSlot, decode_slot, read_head
from events.reader import event_at
from events.segments import SegmentReader, firsts_of, segment_name
from pmagent.cache import code_digest
from pmagent.layout import Layout
from pmagent.log.source import opened
from pmagent.registry import snapshot_digest

SEGMENTS_SHOWN: Final = 200

_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Segment(msgspec.Struct, frozen=True):
    """A segment: its positions, as the names say and HEAD does (``last`` 0: not known), its bytes, and whether it is
    sealed (nobody may write it any more)."""

    name: str
    first: int
    last: int
    bytes: int
    sealed: bool


class Cached(msgspec.Struct, frozen=True):
    """The snapshot. ``fits``: the next start may begin with it; else ``why`` it is passed over."""

    position: int
    bytes: int
    taken: str
    fits: bool
    why: str


class Standing(msgspec.Struct, frozen=True):
    """``slots``: both of HEAD's, None for one that is damaged; None: there is no HEAD. ``segments``: the newest first;
    ``older``: how many more there are. ``aside``: other files in the folder. ``trouble``: what could not be read."""

    slots: tuple[HeadSlot | None, HeadSlot | None] | None
    newest: HeadSlot | None
    segments: list[Segment]
    older: int
    bytes: int
    aside: list[str]
    trouble: str


def standing(layout: Layout) -> Standing:
    """How the log's files stand now. Raises OSError."""
    disk, folder = RealDisk(), str(layout.log)
    slots, newest = _head(disk, f"{folder}/{HEAD_NAME}")  # before the names: they cover what HEAD says
    names = disk.names(folder)
    firsts = firsts_of(names)
    shown = firsts[-SEGMENTS_SHOWN:]
    lasts = [*(first - 1 for first in firsts[1:]), newest.position if newest is not None else 0][-SEGMENTS_SHOWN:]
    found = [_segment(folder, first, last) for first, last in zip(shown, lasts, strict=True)] if firsts else []
    whole = sum(os.stat(f"{folder}/{segment_name(first)}").st_size for first in firsts)
    known = {HEAD_NAME, *map(segment_name, firsts)}
    aside = [name for name in names if name not in known]
    return Standing(slots, newest, found[::-1], len(firsts) - len(shown), whole, aside, _trouble(slots, newest, firsts))


def _head(disk: RealDisk, path: str) -> tuple[tuple[HeadSlot | None, HeadSlot | None] | None, HeadSlot | None]:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None, None
    try:
        reading = read_head(file)  # looks again while it is being written
        raw = file.read_at(0, 2 * SLOT_BYTES)
    finally:
        file.close()
    slots = (decode_slot(raw[:SLOT_BYTES]), decode_slot(raw[SLOT_BYTES:]))
    if not reading.damaged and None in slots:  # it is being written just now
        slots = (slots[0] or reading.newest, slots[1] or reading.newest)
    return slots, reading.newest


def _segment(folder: str, first: int, last: int) -> Segment:
    status = os.stat(f"{folder}/{segment_name(first)}")
    return Segment(segment_name(first), first, max(last, 0), status.st_size, not status.st_mode & _WRITABLE)


def _trouble(
    slots: tuple[HeadSlot | None, HeadSlot | None] | None, newest: HeadSlot | None, firsts: list[int]
) -> str:
    """What is wrong at first sight, "" for nothing."""
    if slots is None:
        return "HEAD is missing, so it is not known how far the log goes" if firsts else ""
    if newest is None:
        return "both of HEAD's slots are damaged, so it is not known how far the log goes"
    if None in slots:
        return f"slot {slots.index(None)} of HEAD is damaged; the other one says how far the log goes"
    if newest.position and (not firsts or firsts[0] != 1):
        return "the first segment is missing"
    return ""


def passed_over(layout: Layout, log_id: str, tail: Tail) -> str:
    """Why an answer about the log ``log_id`` up to ``tail`` says nothing of the log that lies there now; "" where it
    still does: that log goes as far, and has the same sum there. Blocking."""
    if not tail.position:
        return ""
    try:
        with opened(layout.log) as storage:
            if storage.log_id() != log_id:
                return f"it is of another log, {log_id}; here lies {storage.log_id()}"
            end = storage.tail().position
            if end < tail.position:
                return f"the log went up to {tail.position} then, and ends with {end} now"
            stored = event_at(storage, tail.position).sum
            return "" if stored == tail.sum else f"the sum at {tail.position} is another now: {stored}"
    except PmagentError as error:
        return error.message


class Held(msgspec.Struct, frozen=True):
    """A sum that somebody has noted, held against the line at ``position``: ``stored`` is the one that stands there."""

    position: int
    noted: str
    stored: str

    @property
    def equal(self) -> bool:
        """Whether the log up to there is what it was when the sum was noted."""
        return self.noted == self.stored


def held(layout: Layout, position: int, noted: str) -> Held:
    """What the log has at ``position``. Raises NotFound, CorruptLog."""
    with opened(layout.log) as storage:
        return Held(position, noted, event_at(storage, position).sum)


class Snapshots:
    """Looks at the snapshot, again only when it or the log's length has changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: tuple[tuple[int, int], Cached] | None = None

    def look(self) -> Cached | None:
        """The snapshot as it lies there; None: there is none. Raises OSError."""
        path = self._layout.snapshot
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        key = (status.st_mtime_ns, status.st_size)
        if self._known is None or self._known[0] != key:
            self._known = (key, self._judged(path, status.st_size))
        return self._known[1]

    def _judged(self, path: Path, size: int) -> Cached:
        content = path.read_bytes()
        snapshot = decode_snapshot(content)
        if snapshot is None:
            return Cached(0, size, "", fits=False, why="it is damaged, or of another format")
        tail = snapshot.tail
        try:
            storage = SegmentReader(RealDisk(), str(self._layout.log))
            try:
                if snapshot.log_id != storage.log_id():
                    why = "it is of another log"
                elif snapshot.code != code_digest():
                    why = "other code has made it; it is made anew at the next occasion"
                elif sha256(content).hexdigest() != snapshot_digest(self._layout):
                    why = "this user's registry does not know it"
                elif not 0 < tail.position <= storage.tail().position:
                    why = "the log does not go as far"
                else:
                    why = "" if event_at(storage, tail.position).sum == tail.sum else "the log has another sum there"
            finally:
                storage.close()
        except PmagentError as error:
            why = error.message
        return Cached(tail.position, size, tail.time, fits=not why, why=why)
