"""The file operations that the log's files need, as a seam: the real disk here, a simulated one in ``replay``.

Every operation either happens or raises OSError. Names in ``folder`` become durable by ``sync_folder``, bytes by
``DiskFile.sync``; nothing else is promised, and the simulated disk takes back everything else at a crash.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from pmagent.events.tree import held


class Status(NamedTuple):
    """Which file or folder it is (``device`` and ``inode``, the same as long as somebody has it open), its ``size`` in
    bytes (a folder's says nothing), how many names (``links``) a file has, and a folder's ``version``: it changes
    whenever a name in the folder begins, ends or leads elsewhere, and is 0 as long as a further change might not show.
    """

    device: int
    inode: int
    size: int
    links: int
    version: int = 0


class DiskFile(Protocol):
    """An open file of the log."""

    def append(self, data: bytes) -> None:
        """Write all of ``data`` at the end. Raises OSError; some of it may then have been written."""

    def write_at(self, offset: int, data: bytes) -> None:
        """Write all of ``data`` at ``offset``."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes at ``offset``; fewer only at the end of the file."""

    def size(self) -> int:
        """Its length in bytes."""

    def status(self) -> Status:
        """Which file it is, and how large."""

    def is_left(self, size: int) -> bool:
        """Whether it is ``size`` bytes long and has one name."""

    def truncate(self, size: int) -> None:
        """Cut to ``size`` bytes."""

    def sync(self) -> None:
        """Return when its bytes and length are durable (fdatasync)."""

    def close(self) -> None:
        """Let go of it; closing syncs nothing."""


class Disk(Protocol):
    """The folder operations. Paths are strings; folders exist unless ``make_folder`` makes them."""

    def names(self, folder: str) -> list[str]:
        """The names in ``folder``, sorted; [] when it does not exist."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> DiskFile:
        """Open a regular file; a link is not followed. Raises FileNotFoundError unless ``create``; FileExistsError when
        ``create`` and it exists."""

    def status(self, path: str) -> Status | None:
        """The file with this name now, a link itself and not its target; None if there is none."""

    def is_left(self, folder: str, status: Status) -> bool:
        """Whether it is still the folder of this ``status``, and no name in it has changed. False when that is not
        known."""

    def rename(self, source: str, target: str) -> None:
        """Give ``source`` the name ``target``, replacing what has it."""

    def unlink(self, path: str) -> None:
        """Remove a name; no error when there is none."""

    def seal(self, path: str) -> None:
        """Make the file read-only for everybody (a sealed segment)."""

    def make_folder(self, folder: str) -> None:
        """Make ``folder`` and its parents, private to this user, each durable in its parent; also what another process
        made and crashed before it was durable."""

    def sync_folder(self, folder: str) -> None:
        """Return when the names in ``folder`` are durable."""


class RealFile:
    """A file descriptor with the operations above."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at_end = False
        self._measure: _Measure | None = None

    def prepare(self) -> None:
        """Make now what the first ``is_left`` would make: an append would wait for it."""
        self._measure = _measure(self._descriptor)

    def append(self, data: bytes) -> None:
        """See DiskFile. Not by O_APPEND, with which ``write_at`` would append too."""
        if not self._at_end:
            os.lseek(self._descriptor, 0, os.SEEK_END)
            self._at_end = True
        written = os.write(self._descriptor, data)
        while written < len(data):
            more = os.write(self._descriptor, data[written:])
            if more == 0:
                raise OSError("the file takes no more bytes")
            written += more

    def write_at(self, offset: int, data: bytes) -> None:
        """See DiskFile."""
        self._at_end = False  # it may move the end
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            more = os.pwrite(self._descriptor, data[written:], offset + written)
            if more == 0:
                raise OSError("the file takes no more bytes")
            written += more

    def read_at(self, offset: int, size: int) -> bytes:
        """See DiskFile."""
        data = os.pread(self._descriptor, size, offset)
        if not data or len(data) == size:
            return data
        parts = [data]
        got = len(data)
        while got < size and (more := os.pread(self._descriptor, size - got, offset + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def size(self) -> int:
        """See DiskFile."""
        return os.fstat(self._descriptor).st_size

    def status(self) -> Status:
        """See DiskFile."""
        return _status(os.fstat(self._descriptor))

    def is_left(self, size: int) -> bool:
        """See DiskFile."""
        if self._measure is None:
            self.prepare()
        assert self._measure is not None, "it was made just now"
        return self._measure() == (1, size)

    def truncate(self, size: int) -> None:
        """See DiskFile."""
        self._at_end = False
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """See DiskFile."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """See DiskFile."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class RealDisk:
    """The operating system's files."""

    def __init__(self) -> None:
        self._durable_folders: set[str] = set()

    def names(self, folder: str) -> list[str]:
        """See Disk."""
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def open(self, path: str, *, write: bool = False, create: bool = False) -> RealFile:
        """See Disk."""
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        if create:
            flags |= os.O_RDWR | os.O_CREAT | os.O_EXCL
        else:
            flags |= (os.O_RDWR if write else os.O_RDONLY) | os.O_NONBLOCK  # a FIFO must not hold up whoever looks
        descriptor = os.open(path, flags, 0o600)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            wrong = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(wrong, os.strerror(wrong), path)
        file = RealFile(descriptor)
        if write or create:
            file.prepare()
        return file

    def status(self, path: str) -> Status | None:
        """See Disk."""
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISDIR(found.st_mode):
            return _status(found)
        # POSIX has the time of a folder's last change marked whenever a name in it changes, and nobody can set it; but
        # it is as coarse as the kernel's tick, or as the file system keeps times.
        changed = found.st_ctime_ns
        tick = _TICK_NS if changed % _WHOLE_NS else _COARSE_NS
        version = changed if changed + tick < time.time_ns() else 0
        return Status(found.st_dev, found.st_ino, found.st_size, found.st_nlink, version)

    def is_left(self, folder: str, status: Status) -> bool:
        """See Disk."""
        try:
            found = os.lstat(folder)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (
            found.st_ctime_ns == status.version and found.st_ino == status.inode and found.st_dev == status.device
        )  # fmt: skip

    def rename(self, source: str, target: str) -> None:
        """See Disk."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        """See Disk."""
        with suppress(FileNotFoundError):
            os.unlink(path)

    def seal(self, path: str) -> None:
        """See Disk."""
        os.chmod(path, 0o400)

    def make_folder(self, folder: str) -> None:
        """See Disk. Only folders like those made here (ours, private) can be what a crash left undurable."""
        path = Path(folder).absolute()
        exists = path.is_dir()
        if exists and folder in self._durable_folders:
            return
        if not exists:
            self.make_folder(str(path.parent))
            path.mkdir(mode=0o700, exist_ok=True)
            self.sync_folder(str(path.parent))
        elif _private(path):
            self.make_folder(str(path.parent))
            with suppress(PermissionError):  # a folder that we may not list is none in which we make folders
                self.sync_folder(str(path.parent))
        self._durable_folders.add(folder)

    def sync_folder(self, folder: str) -> None:
        """See Disk."""
        with held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as descriptor:
            os.fsync(descriptor)


_WHOLE_NS: Final = 1_000_000_000
_TICK_NS: Final = 30_000_000
"""Two changes of a folder that lie further apart than this have different times: the kernel's tick is 10 ms at most."""
_COARSE_NS: Final = 3 * _WHOLE_NS
"""The same where a file system keeps whole seconds, or every second one."""


_Measure = Callable[[], tuple[int, int]]
"""Tells of an open file how many names it has, and its length in bytes. For one thread at a time."""


def _measure(descriptor: int) -> _Measure:
    """By statx(2), which is asked for nothing else. fstat asks for the time of the last change, too; Linux notes the
    next change more exactly then (since 6.13), which makes the append behind it slower. It is done before each append:
    so its arguments are made once, and the interpreter lock is kept, for it touches no disk."""
    import ctypes  # only what writes a log needs it

    statx = getattr(ctypes.PyDLL(None), "statx", None)
    if statx is None:
        return partial(_measured, descriptor)
    found = ctypes.create_string_buffer(256)
    arguments = (
        ctypes.c_int(descriptor), ctypes.c_char_p(b""), ctypes.c_int(_AT_EMPTY_PATH),
        ctypes.c_uint(_STATX_NLINK | _STATX_SIZE), ctypes.c_void_p(ctypes.addressof(found)),
    )  # fmt: skip
    unpack = _STATX_LAYOUT.unpack_from

    def measure() -> tuple[int, int]:
        if statx(*arguments):
            return _measured(descriptor)  # which raises what was wrong
        links, size = unpack(found)
        return links, size

    return measure


_AT_EMPTY_PATH: Final = 0x1000
_STATX_NLINK: Final = 0x4
_STATX_SIZE: Final = 0x200
_STATX_LAYOUT: Final = struct.Struct("=16xI20xQ")
"""Of ``struct statx`` in linux/stat.h: stx_nlink and stx_size."""


def _measured(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_nlink, found.st_size


def _status(found: os.stat_result) -> Status:
    return Status(found.st_dev, found.st_ino, found.st_size, found.st_nlink)


def _private(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700 and path != path.parent
