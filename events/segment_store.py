"""Storage in local segment files: the embedded default (DESIGN §2). One writer, in one thread at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from events.disk import Disk, DiskFile
from events.errors import CorruptLog, OutcomeUnknown, TailMoved
from events.event import LogRecovered, Tail
from events.head import NAME as HEAD_NAME
from events.head import HeadFile
from events.recovery import open_segments
from events.segments import SegmentReader, segment_name
from events.storage import CHUNK_BYTES

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""A segment that holds so much is followed by a new one (DESIGN §2, roll)."""


class SegmentStorage:
    """The log in ``folder``, opened for writing. The caller holds the lock (``events.lock``).

    ``log_id`` is the log's, or the one that a new log is to get. ``recovered`` is what opening had to cut, to be
    appended as ``log.recovered``. Raises CorruptLog, and OSError of the disk, when it cannot be opened.
    """

    def __init__(
        self, disk: Disk, folder: str, new_log_id: str, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._poison = ""
        self._closed = False
        disk.make_folder(folder)
        names = disk.names(folder)
        if HEAD_NAME not in names:
            if any(name.endswith(".jsonl") for name in names):
                raise CorruptLog(HEAD_NAME, 0, 0, "it is missing, so it is unknown what was durable")
            HeadFile.create(disk, folder, new_log_id).close()
        self._reader = SegmentReader(disk, folder)
        reading = self._reader.head()
        if reading.newest is None:
            raise CorruptLog(HEAD_NAME, 0, 0, "both slots are damaged, so it is unknown what was durable")
        self.log_id = reading.newest.log_id
        opening = open_segments(disk, folder, reading.newest)
        self.recovered: LogRecovered | None = opening.recovered
        self._tail = opening.tail
        self._segment = opening.newest
        self._size = opening.size
        self._file: DiskFile | None = None
        if self._segment:
            self._file = disk.open(f"{folder}/{segment_name(self._segment)}", write=True)
        self._head = HeadFile(disk.open(f"{folder}/{HEAD_NAME}", write=True), self.log_id)
        if reading.damaged or reading.newest.tail() != self._tail:
            self._head.mend(self._tail)

    def tail(self) -> Tail:
        """See StorageReader."""
        return self._tail

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        return self._reader.read(position, bytes_max)

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage. An error of the disk poisons the storage: fsync is never tried again (DESIGN §2)."""
        if self._poison:
            raise OutcomeUnknown(self._poison)
        if expected != self._tail:
            raise TailMoved(f"the tail is at position {self._tail.position}, not {expected.position}")
        data = b"".join(lines)
        try:
            file = self._file
            if file is None or (self._size + len(data) > self._segment_bytes and self._size > 0):
                file = self._roll()
            file.append(data)
            file.sync()
            self._size += len(data)
            self._head.write(tail)
        except OSError as error:
            self._poison = f"{error.strerror or type(error).__name__} in {self._folder}"
            raise OutcomeUnknown(self._poison) from error
        self._tail = tail

    def settle(self) -> None:
        """Make HEAD durable. Raises OutcomeUnknown, and poisons the storage, when that fails."""
        if self._poison:
            raise OutcomeUnknown(self._poison)
        try:
            self._head.settle()
        except OSError as error:
            self._poison = f"{error.strerror or type(error).__name__} at {HEAD_NAME} in {self._folder}"
            raise OutcomeUnknown(self._poison) from error

    def close(self) -> None:
        """Settle (unless poisoned) and close all files."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._poison:
                self.settle()
        finally:
            self._head.close()
            if self._file is not None:
                self._file.close()
            self._reader.close()

    def _roll(self) -> DiskFile:
        """Begin a new segment: temporary name, synced, renamed, folder synced; the old one becomes read-only."""
        first = self._tail.position + 1
        path = f"{self._folder}/{segment_name(first)}"
        file = self._disk.open(f"{path}.tmp", create=True)
        file.sync()
        self._disk.rename(f"{path}.tmp", path)
        self._disk.sync_folder(self._folder)
        if self._file is not None:
            self._file.close()
            self._disk.seal(f"{self._folder}/{segment_name(self._segment)}")
        self._file = file
        self._segment = first
        self._size = 0
        return file
