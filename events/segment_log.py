"""The store of a log in segment files: a folder with the segments and HEAD, and the folder of blobs beside it.

Modules that a reader does not need are imported by the calls that need them: commands start fast.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pmagent.events.blobs import BlobStore
from pmagent.events.disk import Disk, RealDisk
from pmagent.events.errors import LogMoved, NoStandby
from pmagent.events.event import LINE_BYTES_MAX, format_time
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import SLOT_BYTES, HeadSlot, decode_slot, read_head
from pmagent.events.lock import WriterLock, holder_of, is_locked
from pmagent.events.named_blobs import BlobCheck
from pmagent.events.segments import (
    SEGMENT_BYTES,
    SUFFIX,
    SegmentReader,
    firsts_of,
    last_lines,
    line_start,
    segment_firsts,
    segment_name,
)
from pmagent.events.storage import Blobs, Standby, Storage
from pmagent.events.store import Fault, Holder, Identity, LocalFiles, Part, Size, Standing, Verification

PARTS_SHOWN: Final = 200
"""So many segments are described one by one."""

MOVED_NAME: Final = "HEAD.moved"
"""The file that says where a log that was closed for good goes on."""

_NOTE: Final = re.compile(r"pid ([0-9]{1,9}), (.*)", re.DOTALL)
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class SegmentLog:
    """The store of the log in ``folder``, and its lease (see ``pmagent.events.store``). ``locks``: all that its writer
    holds locked; the last one is a file that says who that is. ``kept``: the blobs of which the folder of
    blobs is the cache."""

    def __init__(
        self, folder: str, locks: Sequence[Path] = (), disk: Disk | None = None, segment_bytes: int = SEGMENT_BYTES,
        kept: Callable[[BlobStore], Blobs] | None = None,
    ) -> None:  # fmt: skip
        self.place = folder
        self._kept = kept
        self._locks = locks
        self._disk = disk or RealDisk()
        self._segment_bytes = segment_bytes

    def exists(self) -> bool:
        """See LogStore."""
        try:
            return any(name == HEAD_NAME or name.endswith(SUFFIX) for name in self._disk.names(self.place))
        except NotADirectoryError:
            return False

    def reader(self) -> SegmentReader:
        """See LogStore."""
        return SegmentReader(self._disk, self.place)

    def blobs(self) -> Blobs:
        """See LogStore."""
        folder = BlobStore(self._disk, str(self._blobs))
        return self._kept(folder) if self._kept is not None else folder

    @contextmanager
    def lease(self, role: str, *, standby: Standby | None = None) -> Iterator[SegmentLog]:
        """See LogStore. Raises NoStandby."""
        if standby is not None:
            raise NoStandby(self.place)
        self._disk.make_folder(self.place)  # what is not there cannot be locked
        lock = WriterLock(self._locks[-1], f"pid {os.getpid()}, {role}", *self._locks)
        try:
            if to := self._moved_to():
                raise LogMoved(self.place, to)
            yield self
        finally:
            lock.release()

    def open(self, new_log_id: str = "") -> Storage:
        """See Lease. Without a lease only for a simulation, and for a benchmark or test that has no other writer. A new
        log gets ``new_log_id``, by default a random one."""
        from pmagent.events.segment_store import SegmentStorage

        return SegmentStorage(self._disk, self.place, new_log_id or secrets.token_hex(16), self._segment_bytes)

    def close_for_good(self, to: str) -> None:
        """See Lease: a file beside HEAD says so."""
        path = f"{self.place}/{MOVED_NAME}"
        self._disk.unlink(f"{path}.tmp")
        file = self._disk.open(f"{path}.tmp", create=True)
        try:
            file.append(f"{to}\n".encode())
            file.sync()
        finally:
            file.close()
        self._disk.rename(f"{path}.tmp", path)
        self._disk.sync_folder(self.place)

    def _moved_to(self) -> str:
        """Where the log was moved to; "": it was not."""
        try:
            file = self._disk.open(f"{self.place}/{MOVED_NAME}")
        except FileNotFoundError:
            return ""
        try:
            return file.read_at(0, LINE_BYTES_MAX).decode("utf-8", "replace").strip() or "another place"
        finally:
            file.close()

    def holder(self) -> Holder:
        """See LogStore."""
        live = is_locked(*self._locks)
        note = holder_of(self._locks[-1])
        match = _NOTE.fullmatch(note)
        if match is None:
            return Holder(live, note)
        try:
            since = format_time(datetime.fromtimestamp(self._locks[-1].stat().st_mtime, UTC))
        except FileNotFoundError:  # removed just now
            since = ""
        return Holder(live, note, int(match[1]), match[2], since)

    def sharing(self) -> None:
        """See LogStore."""

    def verify(
        self, *, decode: bool = False, blobs: BlobCheck | None = None, progress: Callable[[int], None] | None = None
    ) -> Verification:
        """See LogStore."""
        from pmagent.events.verify import verify_log

        return verify_log(self.place, self._disk, decode=decode, blobs=blobs, progress=progress)

    def stat(self) -> Standing:
        """See LogStore."""
        slots, newest = self._head()  # before the names: they cover what HEAD says
        names = self._disk.names(self.place)
        firsts = firsts_of(names)
        lasts = [*(first - 1 for first in firsts[1:]), newest.position if newest is not None else 0]
        shown = [*zip(firsts, lasts, strict=False)][-PARTS_SHOWN:]
        moved = self._moved_to()
        known = {HEAD_NAME, MOVED_NAME, *map(segment_name, firsts)}
        return Standing(
            newest.log_id if newest is not None else "",
            tuple(slot.tail() if slot is not None else None for slot in slots),
            newest.tail() if newest is not None else None, [self._part(first, last) for first, last in reversed(shown)],
            len(firsts) - len(shown), sum(os.stat(self._path(first)).st_size for first in firsts),
            [name for name in names if name not in known], _trouble(slots, newest, firsts, moved),
        )

    def faults(self) -> list[Fault]:
        """See LogStore: there is no database."""
        return []

    def size(self) -> Size:
        """See LogStore."""
        return Size(
            sum(path.stat().st_size for path in Path(self.place).glob(f"*{SUFFIX}")),
            sum(path.lstat().st_size for path in self._blobs.glob("??/*")),
        )

    def identity(self) -> Identity:
        """See LogStore: device and inode of the folder."""
        found = os.stat(self.place)
        return Identity(os.path.realpath(self.place), (found.st_dev, found.st_ino), found.st_uid)

    def age(self) -> tuple[int, int]:
        """See LogStore: files are replaced unnoticed."""
        return 0, 0

    def written(self, position: int) -> tuple[int, str]:
        """See LogStore. Not by HEAD, which may be older than its segments after a power loss."""
        from pmagent.events.damage import sum_of

        last = self._last_position()
        if not 0 < position <= last:
            return last, ""
        with closing(self.reader()) as reader:
            first, offset = reader.locate(position)
            return last, sum_of(reader.file(first).read_at(offset, LINE_BYTES_MAX), 0)

    def attempts(self) -> None:
        """See LogStore: nobody on another host reaches it."""

    def files(self) -> LocalFiles:
        """See LogStore."""
        folder = Path(self.place)
        try:
            names = sorted(path.name for path in folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            names = []
        written = (folder / name for name in names if name == HEAD_NAME or name.endswith(SUFFIX))
        return LocalFiles((folder, self._blobs), tuple(written), tuple(lock for lock in self._locks if lock != folder))

    @property
    def _blobs(self) -> Path:
        return Path(self.place).parent / "blobs"

    def _path(self, first: int) -> str:
        return f"{self.place}/{segment_name(first)}"

    def _head(self) -> tuple[tuple[HeadSlot | None, ...], HeadSlot | None]:
        """Both slots of HEAD, and the one that counts; no slots where there is no HEAD."""
        try:
            file = self._disk.open(f"{self.place}/{HEAD_NAME}")
        except FileNotFoundError:
            return (), None
        try:
            reading = read_head(file)  # looks again while it is being written
            raw = file.read_at(0, 2 * SLOT_BYTES)
        finally:
            file.close()
        slots = (decode_slot(raw[:SLOT_BYTES]), decode_slot(raw[SLOT_BYTES:]))
        if not reading.damaged:  # one is being written just now
            slots = (slots[0] or reading.newest, slots[1] or reading.newest)
        return slots, reading.newest

    def _part(self, first: int, last: int) -> Part:
        status = os.stat(self._path(first))
        return Part(segment_name(first), first, max(last, 0), status.st_size, not status.st_mode & _WRITABLE)

    def _last_position(self) -> int:
        """The position of the last whole line that is there; 0 without one."""
        for first in reversed(segment_firsts(self._disk, self.place)):
            with closing(self._disk.open(self._path(first))) as file:
                claim = line_start(last_lines(file)[1])
            if claim is not None:
                return claim[0]
        return 0


def _trouble(slots: tuple[HeadSlot | None, ...], newest: HeadSlot | None, firsts: list[int], moved: str) -> str:
    """The fault that shows at first sight, "" for none."""
    if not slots:
        return "HEAD is missing, so it is not known how far the log goes" if firsts else ""
    if newest is None:
        return "both of HEAD's slots are damaged, so it is not known how far the log goes"
    if None in slots:
        return f"slot {slots.index(None)} of HEAD is damaged; the other one says how far the log goes"
    if newest.position and (not firsts or firsts[0] != 1):
        return "the first segment is missing"
    return f"it was moved to {moved}" if moved else ""
