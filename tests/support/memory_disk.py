"""A disk in memory that remembers what is durable: for tests of thousands of damaged and crashed logs.

Names are durable after ``sync_folder``, bytes after ``DiskFile.sync``; ``power_loss`` takes back the rest, or keeps
what a caller lets it keep. ``before`` is called ahead of each operation and may raise.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from posixpath import dirname

from pmagent.events.disk import Status

SECTOR = 512


_NUMBERS = count(1)


class Content:
    """The data that a file holds now, and what it is known to hold on the disk."""

    def __init__(self) -> None:
        self.inode = next(_NUMBERS)
        self.links = 1
        self.data = bytearray()
        self.durable = b""


class MemoryFile:
    """An open file."""

    def __init__(self, disk: MemoryDisk, path: str, content: Content) -> None:
        self._disk, self._path, self._content = disk, path, content
        self._open = True
        disk.open_files += 1

    def append(self, data: bytes) -> None:
        """See DiskFile."""
        room = self._disk.room
        if room is not None and room < len(data):
            self._content.data += data[:room]
            self._disk.room = 0
            raise OSError(28, "No space left on device")
        self._disk.note("append", self._path)
        self._content.data += data
        if room is not None:
            self._disk.room = room - len(data)

    def write_at(self, offset: int, data: bytes) -> None:
        """See DiskFile."""
        self._disk.note("write_at", self._path)
        self._content.data[offset : offset + len(data)] = data

    def read_at(self, offset: int, size: int) -> bytes:
        """See DiskFile."""
        return bytes(self._content.data[offset : offset + size])

    def size(self) -> int:
        """See DiskFile."""
        return len(self._content.data)

    def status(self) -> Status:
        """See DiskFile."""
        return Status(1, self._content.inode, len(self._content.data), self._content.links)

    def is_left(self, size: int) -> bool:
        """See DiskFile."""
        return (len(self._content.data), self._content.links) == (size, 1)

    def truncate(self, size: int) -> None:
        """See DiskFile."""
        self._disk.note("truncate", self._path)
        del self._content.data[size:]

    def sync(self) -> None:
        """See DiskFile."""
        self._disk.note("sync", self._path)
        self._content.durable = bytes(self._content.data)

    def close(self) -> None:
        """See DiskFile."""
        if self._open:
            self._open = False
            self._disk.open_files -= 1


class MemoryDisk:
    """The Disk protocol over dictionaries. ``room``: how many bytes may still be appended."""

    def __init__(self) -> None:
        self.contents: dict[str, Content] = {}
        self.durable_names: dict[str, Content] = {}
        self.sealed: set[str] = set()
        self.folders: dict[str, int] = {}
        self.open_files = 0
        self.room: int | None = None
        self.before: Callable[[str, str], None] = lambda _operation, _path: None

    def note(self, operation: str, path: str) -> None:
        """Call ``before``."""
        self.before(operation, path)

    def names(self, folder: str) -> list[str]:
        """See Disk."""
        return sorted(path.rpartition("/")[2] for path in self.contents if dirname(path) == folder)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> MemoryFile:
        """See Disk."""
        if write and path in self.sealed:
            raise PermissionError(path)
        if create:
            self.note("create", path)
            if path in self.contents:
                raise FileExistsError(path)
            self.contents[path] = Content()
        elif path not in self.contents:
            raise FileNotFoundError(path)
        return MemoryFile(self, path, self.contents[path])

    def status(self, path: str) -> Status | None:
        """See Disk. A folder that was made here is there until ``folders`` says otherwise."""
        if path in self.folders:
            return Status(1, self.folders[path], 0, 1)
        content = self.contents.get(path)
        return Status(1, content.inode, len(content.data), content.links) if content is not None else None

    def is_left(self, folder: str, status: Status) -> bool:
        """See Disk. Nobody counts the changes of its names: it is never known."""
        return status.version > 0 and self.status(folder) == status

    def rename(self, source: str, target: str) -> None:
        """See Disk."""
        self.note("rename", target)
        self.contents[target] = self.contents.pop(source)

    def unlink(self, path: str) -> None:
        """See Disk."""
        self.note("unlink", path)
        self.contents.pop(path, None)

    def seal(self, path: str) -> None:
        """See Disk."""
        self.note("seal", path)
        self.sealed.add(path)

    def make_folder(self, folder: str) -> None:
        """See Disk."""
        self.note("make_folder", folder)
        self.folders.setdefault(folder, next(_NUMBERS))

    def sync_folder(self, folder: str) -> None:
        """See Disk."""
        self.note("sync_folder", folder)
        kept = {path: content for path, content in self.durable_names.items() if dirname(path) != folder}
        self.durable_names = kept | {path: c for path, c in self.contents.items() if dirname(path) == folder}

    # For tests

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return bytes(self.contents[path].data)

    def put(self, path: str, data: bytes) -> None:
        """Give a file this content, durable."""
        content = self.contents.setdefault(path, Content())
        content.data = bytearray(data)
        content.durable = bytes(data)
        self.durable_names[path] = content

    def copy(self) -> MemoryDisk:
        """A disk with the same files, all durable."""
        other = MemoryDisk()
        for path, content in self.contents.items():
            other.put(path, bytes(content.data))
        return other

    def power_loss(self, keep: Callable[[], bool] = lambda: False) -> MemoryDisk:
        """The disk after the power failed: ``keep`` is asked for each sector and each name that was not synced."""
        other = MemoryDisk()
        for path in self.durable_names | self.contents:
            now, durable = self.contents.get(path), self.durable_names.get(path)
            if now is durable and now is not None:
                other.put(path, _survives(now, keep))
            elif (chosen := now if keep() else durable) is not None:
                other.put(path, _survives(chosen, keep))
        return other


def _survives(content: Content, keep: Callable[[], bool]) -> bytes:
    """The data of a file after a power loss: each sector as it was or as it was to be; the length alike."""
    old, new = content.durable, bytes(content.data)
    if old == new:
        return old
    if len(new) < len(old):  # a cut happens or not
        return new if keep() else old
    size = len(new) if keep() else len(old)
    result = bytearray(size)
    for at in range(0, size, SECTOR):
        end = min(at + SECTOR, size)
        source = new if keep() else old
        piece = source[at:end]
        result[at : at + len(piece)] = piece
    return bytes(result)
