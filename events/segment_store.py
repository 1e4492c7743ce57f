"""Storage in local segment files: the embedded default (docs/design.md §2.5). One writer, in one thread at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pmagent.events.disk import Disk, DiskFile, Status
from pmagent.events.errors import FULL, CorruptLog, DiskFull, ForeignChange, OutcomeUnknown, TailMoved
from pmagent.events.event import LogRecovered, Tail
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import HeadFile, HeadSlot
from pmagent.events.line import check_batch
from pmagent.events.recovery import Opening, open_segments
from pmagent.events.segments import SEGMENT_BYTES, SegmentReader, segment_name
from pmagent.events.storage import CHUNK_BYTES


class SegmentStorage:
    """The log in ``folder``, opened for writing. The caller holds the lock (``pmagent.events.lock``).

    ``new_log_id`` is for a log that does not exist yet. Raises CorruptLog, and OSError of the disk, when it cannot be
    opened.
    """

    is_local = True
    lease: None = None
    taken_over: None = None
    age = (0, 0)

    def __init__(self, disk: Disk, folder: str, new_log_id: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._disk = disk
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._poison: OutcomeUnknown | None = None
        self._closed = False
        self._file: DiskFile | None = None
        disk.make_folder(folder)
        self._ensure_head(new_log_id)
        self._reader = SegmentReader(disk, folder)
        self.reads_files = self._reader.reads_files
        try:
            reading = self._reader.head()
            if reading.newest is None:
                raise CorruptLog(HEAD_NAME, 0, 0, "both slots are damaged, so it is unknown what was durable")
            self._log_id = reading.newest.log_id
            self._head = HeadFile(disk.open(f"{folder}/{HEAD_NAME}", write=True), self._log_id)
        except BaseException:
            self._reader.close()
            raise
        try:
            opening = self._open_segments(reading.newest)
            self.recovered: LogRecovered | None = opening.recovered
            if reading.damaged or (reading.newest.tail(), reading.newest.segment) != (self._tail, self._segment or 1):
                self._head.repair(self._tail, self._segment or 1)
            self._left = self._status_left()
        except BaseException:
            self._let_go()
            raise

    def _ensure_head(self, new_log_id: str) -> None:
        names = self._disk.names(self._folder)
        if HEAD_NAME not in names:
            if any(name.endswith(".jsonl") for name in names):
                raise CorruptLog(HEAD_NAME, 0, 0, "it is missing, so it is unknown what was durable")
            HeadFile.create(self._disk, self._folder, new_log_id).close()

    def _open_segments(self, head: HeadSlot) -> Opening:
        opening = open_segments(self._disk, self._folder, head)
        self._tail = opening.tail
        self._segment = opening.newest
        self._path = f"{self._folder}/{segment_name(self._segment)}"
        self._size = opening.size
        if self._segment:
            self._file = self._disk.open(f"{self._folder}/{segment_name(self._segment)}", write=True)
        return opening

    def tail(self) -> Tail:
        """See StorageReader."""
        return self._tail

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        return self._reader.read(position, bytes_max)

    def location(self, position: int) -> tuple[str, int]:
        """See StorageReader."""
        return self._reader.location(position)

    def changes(self, position: int, seconds: float) -> bool:
        """See StorageReader."""
        return self._reader.changes(position, seconds)

    def log_id(self) -> str:
        """See LogReader."""
        return self._log_id

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage. An error of the disk poisons the storage: fsync is never tried again (docs/design.md §2.2).

        That the disk holds ``expected`` follows from what is compared before each write: the names still lead to the
        files that we have open, which are as long as we left them. Nobody else writes them as long as that holds.
        """
        if self._poison is not None:
            raise self._poison
        if expected is not self._tail and expected != self._tail:
            raise TailMoved(f"the tail is at position {self._tail.position}, not {expected.position}")
        check_batch(expected, lines, tail)
        data = b"".join(lines)
        self._look()
        try:
            file = self._file
            if file is None or (self._size + len(data) > self._segment_bytes and self._size > 0):
                file = self._roll()
            self._append(file, data)
            file.sync()
            self._size += len(data)
            self._head.write(tail, self._segment)
        except OSError as error:
            raise self._poisoned(error, self._folder) from error
        self._tail = tail

    def _append(self, file: DiskFile, data: bytes) -> None:
        """Write ``data`` at the end. A failed write is cut back as far as that goes: on a full disk
        each start would keep its torn bytes aside."""
        try:
            file.append(data)
        except OSError:
            with suppress(OSError):  # the next opening cuts it
                file.truncate(self._size)
            raise

    def settle(self) -> None:
        """Look whether the files are still there, and make HEAD durable. Raises OutcomeUnknown, and poisons the
        storage, when that fails."""
        if self._poison is not None:
            raise self._poison
        self._look_at_names()
        try:
            self._head.settle()
        except OSError as error:
            raise self._poisoned(error, f"{self._folder}/{HEAD_NAME}") from error

    def close(self) -> None:
        """Settle (unless poisoned) and close all files."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._poison is None:
                self.settle()
        finally:
            self._let_go()

    def _poisoned(self, error: OSError, place: str) -> OutcomeUnknown:
        failure = DiskFull if error.errno in FULL else OutcomeUnknown
        self._poison = failure(f"{error.strerror or type(error).__name__} in {place}")
        return self._poison

    def _status_left(self) -> dict[str, Status]:
        """The state of the folder, HEAD and the newest segment, by path; ``_size`` says how long the latter is. Raises
        ForeignChange, OSError."""
        folder = self._disk.status(self._folder)
        if folder is None:
            raise ForeignChange(self._folder, "was removed")
        left = {self._folder: folder, f"{self._folder}/{HEAD_NAME}": self._head.status()}
        if self._file is not None:
            left[self._path] = self._file.status()
        return left

    def _look(self) -> None:
        """Whether the paths still lead to what we have open, and nobody else has written it. As long as no name in the
        folder has changed since all of them were looked at, the open files themselves tell. Raises ForeignChange, or
        OutcomeUnknown for an error of the disk; poisons the storage then."""
        try:
            if (
                self._disk.is_left(self._folder, self._left[self._folder]) and self._head.is_left()
                and (self._file is None or self._file.is_left(self._size))
            ):  # fmt: skip
                return
        except OSError as error:
            raise self._poisoned(error, self._folder) from error
        self._look_at_names()

    def _look_at_names(self) -> None:
        """``_look`` by every name, whatever the folder's version is."""
        folder = self._left[self._folder]
        for path, left in self._left.items():
            try:
                found = self._disk.status(path)
            except OSError as error:
                raise self._poisoned(error, path) from error
            due = Status(left.device, left.inode, self._size, 1) if path == self._path else left
            if path == self._folder and found is not None and found[:2] == due[:2]:
                folder = found  # its size and links change with what lies in it
            elif path == self._folder or found != due:
                self._poison = ForeignChange(path, _change(found, due))
                raise self._poison
        self._left[self._folder] = folder

    def _let_go(self) -> None:
        self._head.close()
        if self._file is not None:
            self._file.close()
        self._reader.close()

    def _roll(self) -> DiskFile:
        """Begin a new segment: temporary name, synced, renamed, folder synced; HEAD notes it before anything is written
        into it, so that it cannot be removed unnoticed; the old one becomes read-only."""
        first = self._tail.position + 1
        path = f"{self._folder}/{segment_name(first)}"
        if self._file is not None:
            self._file.sync()  # an earlier process may have cut a failed write back, and died before that was durable
        self._head.settle()  # HEAD vouches for every segment but the newest
        file = self._disk.open(f"{path}.tmp", create=True)
        try:
            file.sync()
            self._disk.rename(f"{path}.tmp", path)
            self._disk.sync_folder(self._folder)
            if self._segment:
                self._head.repair(self._tail, first)
        except OSError:
            file.close()
            raise
        if self._file is not None:
            self._file.close()
            self._disk.seal(f"{self._folder}/{segment_name(self._segment)}")
            del self._left[self._path]
        self._file = file
        self._segment = first
        self._path = path
        self._size = 0
        self._left[path] = file.status()
        return file


def _change(found: Status | None, left: Status) -> str:
    """The change between a file or folder as it was ``left`` and as it is ``found``, in words."""
    if found is None:
        return "was removed"
    if found[:2] != left[:2]:
        return "was replaced by another"
    if found.size != left.size:
        return f"has {found.size} bytes, and had {left.size}: somebody else wrote it"
    return "has another name, too (a hard link)"
