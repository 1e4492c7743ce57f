"""A disk that keeps its word and nothing more: what was not synced may be lost, torn or reordered at a power loss.

Bytes: each unsynced write is lost or kept sector by sector, and the file's end may stand at any byte between. Names:
each unsynced change of a folder is lost or kept; a rename as one step. A sync that fails forgets what it should have
written: the bytes stay readable, but no later sync makes them durable (as Linux does). Reads are never stale.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from itertools import count, pairwise
from posixpath import dirname
from random import Random
from typing import Final

from pmagent.events.disk import Status
from pmagent.events.segments import SUFFIX
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.faults import Faults

SECTOR: Final = 512


class Crashed(BaseException):
    """The process ended here, in the middle of whatever it did. No Exception: nothing may handle it."""


class _Inode:
    """A file: ``data`` is what a read gives, ``durable`` what is on the disk; ``pending`` leads from one to the other
    (offset and bytes, or a length to cut to)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.links = 1
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []
        self.sealed = False


def _apply(target: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del target[offset:]
    else:
        if offset > len(target):
            target.extend(bytes(offset - len(target)))  # a hole reads as zeros
        target[offset : offset + len(data)] = data


Change = tuple[str, str, "_Inode | None"]
"""A change of a folder: the name that goes ("" for none), the name that comes ("" for none), and what it names."""


class SimDisk:
    """The Disk protocol. ``crash_after``: so many operations from now the process ends (None: not)."""

    def __init__(self, chance: Chance, faults: Faults) -> None:
        self._chance = chance
        self._faults = faults
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._changes: dict[str, list[Change]] = {}
        self._listed: dict[str, list[str]] = {}
        """The files of folders in which no name has changed since."""
        self._folders: dict[str, int] = {}
        self._numbers = count(1)
        self._version = 1  # of all folders
        self._losses = 0
        self.generation = 0
        self.crash_after: int | None = None
        self.between_names = False
        """Whether the process ends, or has ended last, after a change of a folder and before the next operation."""
        self.full = False
        self.watched = True
        """Off while the simulation itself looks at the disk: no fault strikes then."""
        self.reading = False
        """Whether the last operation was a read. Reads behind one another are one operation, however many they are:
        nothing is done between them."""

    # --- the Disk protocol ----------------------------------------------------------------------------------------

    def names(self, folder: str) -> list[str]:
        """See Disk."""
        self.step()
        return [path[len(folder) + 1 :] for path in self.paths(folder)]

    def open(self, path: str, *, write: bool = False, create: bool = False) -> SimFile:
        """See Disk."""
        self.step()
        inode = self._names.get(path)
        if create:
            if inode is not None:
                raise FileExistsError(errno.EEXIST, "File exists", path)
            self._room()
            inode = self._names[path] = _Inode(next(self._numbers))
            self._change(path, ("", path, inode))
        elif inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        elif write and inode.sealed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        if inode.data is inode.durable:
            inode.data = bytearray(inode.durable)
        return SimFile(self, inode)

    def status(self, path: str) -> Status | None:
        """See Disk."""
        self.step()
        if path in self._folders:
            return Status(1, self._folders[path], 0, 1, self._version)
        inode = self._names.get(path)
        return Status(1, inode.number, len(inode.data), inode.links) if inode is not None else None

    def is_left(self, folder: str, status: Status) -> bool:
        """See Disk."""
        self.step()
        return (self._folders.get(folder), self._version) == (status.inode, status.version)

    def rename(self, source: str, target: str) -> None:
        """See Disk."""
        self.step()
        inode = self._names.pop(source)
        self._names[target] = inode
        self._listed.pop(dirname(source), None)
        self._change(target, (source, target, inode))

    def unlink(self, path: str) -> None:
        """See Disk."""
        self.step()
        if self._names.pop(path, None) is not None:
            self._change(path, (path, "", None))

    def seal(self, path: str) -> None:
        """See Disk."""
        self.step()
        self._names[path].sealed = True

    def make_folder(self, folder: str) -> None:
        """See Disk. Folders are the paths' beginnings here, and durable when this returns."""
        self.step()
        if self.strike("disk: sync error"):
            raise OSError(errno.EIO, "Input/output error", folder)
        if folder not in self._folders:
            self._folders[folder] = next(self._numbers)

    def sync_folder(self, folder: str) -> None:
        """See Disk."""
        self.step()
        if self.strike("disk: sync error"):
            raise OSError(errno.EIO, "Input/output error", folder)
        for change in self._changes.pop(folder, ()):
            _rename(self._durable_names, change)

    # --- faults ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """An operation begins; the process may end here."""
        if not self.watched:
            return
        self.reading = False
        if self.crash_after is not None:
            self.step_to_end()

    def step_to_end(self) -> None:
        """One operation less until the process ends."""
        assert self.crash_after is not None, "asked only then"
        self.crash_after -= 1
        if self.crash_after < 0:
            raise Crashed

    def strike(self, fault: str) -> bool:
        """Whether a fault of the disk strikes this operation."""
        return self.watched and self._faults.strike(fault)

    def ends_here(self) -> bool:
        """Whether the process ends in this operation, which is then done in part."""
        return self.watched and self.crash_after == 0

    def part(self, size: int) -> int:
        """How much of ``size`` bytes gets done before an error."""
        return int(self._chance.uniform("disk: part of a write") * (size + 1))

    def _room(self) -> None:
        if self.watched and self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _change(self, path: str, change: Change) -> None:
        self._version += 1
        folder = dirname(path)
        self._listed.pop(folder, None)
        self._changes.setdefault(folder, []).append(change)
        if self.crash_after is None and self.strike("crash: between names"):
            self.crash_after = 0
            self.between_names = True

    # --- ends -----------------------------------------------------------------------------------------------------

    def crash(self, power: bool) -> None:
        """The process is gone: its open files are void. With ``power`` off, so is what was not synced."""
        self.generation += 1
        self.crash_after = None
        if not power:
            return
        random = self._loss()
        keep = _chooser(random)
        for changes in self._changes.values():
            for change in changes:
                if keep():
                    _rename(self._durable_names, change)
                else:
                    self._faults.note("disk: name lost")
        self._changes.clear()
        inodes = {id(inode): inode for inode in (*self._names.values(), *self._durable_names.values())}
        for inode in inodes.values():
            if inode.pending:
                self._lose(inode, keep, random)
            if inode.data != inode.durable:
                inode.data = bytearray(inode.durable)
            if inode.sealed and random.random() < 0.1:
                inode.sealed = False
                self._faults.note("disk: sealing lost")
        self._names = dict(self._durable_names)
        self._listed.clear()

    def _loss(self) -> Random:
        """The chance of the bytes that are lost now, which are many or few."""
        self._losses += 1
        return self._chance.stream(f"disk: loss {self._losses}")

    def _lose(self, inode: _Inode, keep: Callable[[], bool], random: Random) -> None:
        before = len(inode.durable)
        lost = False
        for offset, data in inode.pending:
            if data is None:
                if not keep():
                    lost = True
                    break  # what was written behind a cut that did not happen did not happen either
                _apply(inode.durable, offset, None)
                continue
            for start, piece in _sectors(offset, data):
                if keep():
                    _apply(inode.durable, start, piece)
                else:
                    lost = True
        if lost:
            self._faults.note("disk: bytes lost")
        inode.pending.clear()
        if len(inode.durable) > before and random.random() < 0.5:
            del inode.durable[random.randrange(before, len(inode.durable) + 1) :]
            self._faults.note("disk: bytes torn")

    def forget(self, inode: _Inode) -> None:
        """A failed sync: some sectors arrived, the others never will."""
        random = self._loss()
        for offset, data in inode.pending:
            if data is None:
                _apply(inode.durable, offset, None)
                continue
            for start, piece in _sectors(offset, data):
                if random.random() < 0.5:
                    _apply(inode.durable, start, piece)
        inode.pending.clear()

    # --- somebody else ----------------------------------------------------------------------------------------------

    def change(self, what: str, folder: str) -> Callable[[], None] | None:
        """Do one of ``FOREIGN_CHANCES`` to the log in ``folder``, under whoever has it open; what undoes it. None when
        there is nothing to change: an empty segment cannot be cut."""
        names, number = dict(self._names), self._folders[folder]
        newest = max(path for path in names if dirname(path) == folder and path.endswith(".jsonl"))
        path = f"{folder}/HEAD" if "HEAD" in what else newest
        inode = self._names[path]
        data = bytes(inode.data)
        if what == "log: segment cut" and not data:
            return None
        self._version += 1
        self._listed.clear()
        if what == "log: folder removed":
            del self._folders[folder]
            self._names = {name: kept for name, kept in names.items() if dirname(name) != folder}
        elif what == "log: folder replaced":
            self._folders[folder] = next(self._numbers)
        elif what.endswith("removed"):
            del self._names[path]
        elif what.endswith("replaced"):
            self._names[path] = _Inode(next(self._numbers))
            self._names[path].data[:] = data
        elif what == "log: segment appended to":
            inode.data += data[-80:] or b"\n"
        elif what == "log: segment cut":
            del inode.data[-1:]
        else:
            inode.links = 2

        def undo() -> None:
            self._version += 1
            self._listed.clear()
            self._names, self._folders[folder] = names, number
            inode.data[:], inode.links = data, 1

        return undo

    # --- for the simulation itself --------------------------------------------------------------------------------

    def paths(self, folder: str) -> list[str]:
        """Every file in a folder, sorted."""
        found = self._listed.get(folder)
        if found is None:
            start = f"{folder}/"
            found = sorted(path for path in self._names if path.startswith(start) and "/" not in path[len(start) :])
            self._listed[folder] = found
        return found

    def log(self, folder: str) -> bytes:
        """The log's segments in a folder, one behind the other."""
        return b"".join(self._names[path].data for path in self.paths(folder) if path.endswith(SUFFIX))

    def has_log(self, folder: str) -> bool:
        """Whether the folder holds a segment."""
        start = f"{folder}/"
        return any(path.endswith(SUFFIX) and path.startswith(start) for path in self._names)

    def files(self) -> dict[str, bytes]:
        """Every file as a read gives it."""
        return {path: bytes(inode.data) for path, inode in sorted(self._names.items())}

    def put(self, path: str, content: bytes) -> None:
        """Give a file this content, durable, replacing what has the name."""
        inode = _Inode(next(self._numbers))
        inode.data = inode.durable = bytearray(content)  # two of their own when it is opened
        if path not in self._names:
            self._listed.pop(dirname(path), None)
        self._names[path] = self._durable_names[path] = inode

    def get(self, path: str) -> bytes | None:
        """A file's content; None when there is none."""
        return bytes(inode.data) if (inode := self._names.get(path)) is not None else None

    def get_durable(self, path: str) -> bytes | None:
        """The least that a power loss would leave of a file, if it struck now; None if not even its name."""
        return bytes(inode.durable) if (inode := self._durable_names.get(path)) is not None else None


def _chooser(random: Random) -> Callable[[], bool]:
    """How a power loss chooses: everything is lost, nothing is, or each sector has its own luck."""
    chance = random.choice((0.0, 0.5, 0.9, 1.0))
    return lambda: random.random() < chance


def _rename(names: dict[str, _Inode], change: Change) -> None:
    source, target, inode = change
    names.pop(source, None)
    if target and inode is not None:
        names[target] = inode


def _sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    """``data`` in the pieces that a disk writes whole."""
    cuts = [0, *range(SECTOR - offset % SECTOR, len(data), SECTOR), len(data)]
    return [(offset + start, data[start:end]) for start, end in pairwise(cuts) if end > start]


class SimFile:
    """The DiskFile protocol; void after a crash."""

    def __init__(self, disk: SimDisk, inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._generation = disk.generation

    def append(self, data: bytes) -> None:
        """See DiskFile."""
        self._write(len(self._inode.data), data)

    def write_at(self, offset: int, data: bytes) -> None:
        """See DiskFile."""
        self._write(offset, data)

    def _write(self, offset: int, data: bytes) -> None:
        disk, inode = self._disk, self._inode
        self._step()
        grows = offset + len(data) > len(inode.data)
        full = disk.watched and disk.full and grows
        failed = disk.strike("disk: write error")
        dies = disk.ends_here() or disk.strike("crash: in a write")
        if full or failed or dies:
            data = data[: disk.part(len(data))]
        if data:
            _apply(inode.data, offset, data)
            inode.pending.append((offset, bytes(data)))
        if dies:
            raise Crashed
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if failed:
            raise OSError(errno.EIO, "Input/output error")

    def read_at(self, offset: int, size: int) -> bytes:
        """See DiskFile."""
        disk = self._disk
        if not disk.reading or self._generation != disk.generation:
            self._step()
            if disk.strike("disk: read error"):
                raise OSError(errno.EIO, "Input/output error")
            disk.reading = disk.watched
        return bytes(memoryview(self._inode.data)[offset : offset + size])

    def size(self) -> int:
        """See DiskFile."""
        self._step()
        return len(self._inode.data)

    def status(self) -> Status:
        """See DiskFile."""
        self._step()
        return Status(1, self._inode.number, len(self._inode.data), self._inode.links)

    def is_left(self, size: int) -> bool:
        """See DiskFile."""
        self._step()
        return len(self._inode.data) == size and self._inode.links == 1

    def truncate(self, size: int) -> None:
        """See DiskFile."""
        self._step()
        del self._inode.data[size:]
        self._inode.pending.append((size, None))

    def sync(self) -> None:
        """See DiskFile."""
        self._step()
        if self._disk.strike("disk: sync error"):
            self._disk.forget(self._inode)
            raise OSError(errno.EIO, "Input/output error")
        for offset, data in self._inode.pending:
            _apply(self._inode.durable, offset, data)
        self._inode.pending.clear()

    def close(self) -> None:
        """See DiskFile."""

    def _step(self) -> None:
        disk = self._disk
        if self._generation != disk.generation:
            raise Crashed
        if disk.watched:  # the same as step(), without the call: hardly anything is done as often
            disk.reading = False
            if disk.crash_after is not None:
                disk.step_to_end()
