"""Reads and removes the artifact folder of a run without trusting anything in it; blocking.

The folder was written by a foreign program. Here a name is never followed further than one step: every folder and file
is opened from the folder that it lies in, as itself (``O_PATH | O_NOFOLLOW``), looked at, and only then opened to be
read. So no link leads anywhere, and no FIFO, socket or device is ever opened. Called when nothing of the run lives.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import msgspec

from pmagent.actors.sandbox.arguments import REPOSITORY, is_repository
from pmagent.actors.sandbox.protected import PROTECTED
from pmagent.contracts.orchestra import RelativePath
from pmagent.events.tree import held

TOLD_MAX: Final = 50
"""So many skipped things are told by name; of the others, their number."""

_NAME_CHARS_MAX: Final = 200
_BATCH: Final = 1000
_READ: Final = os.O_RDONLY | os.O_CLOEXEC
_AS_ITSELF: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was left is looked at, and taken."""

    files: int = 500
    file_bytes: int = 64 * 2**20
    """Of one file, by its size: holes count."""
    total_bytes: int = 256 * 2**20
    depth: int = 32
    """Folders above a file, without the artifact folder itself."""
    entries: int = 20_000
    """Files and folders that are looked at."""


class Found(NamedTuple):
    """A file that was left: its path below the folder, its size in bytes, and its content, to be read in order."""

    path: str
    size: int
    content: BinaryIO


class Collected:
    """The regular files below ``folder``, in the order of their paths' parts; iterate once. ``content`` is closed when
    the next file is asked for. Entries left out are listed by ``skipped`` afterwards; nothing is changed but
    the owner's right to the folder itself.

    Files with a second name are left out: the other name may be one outside, that was there before. So are files whose
    path is no ``RelativePath`` in UTF-8, files that the service may not read, whatever programs of the host obey where
    it lies (``PROTECTED``, repositories of git), and whatever goes beyond ``bounds``.

    Raises OSError where the folder itself cannot be opened, or is a link.
    """

    def __init__(self, folder: str, bounds: Bounds | None = None) -> None:
        self._folder = folder
        self._bounds = bounds or Bounds()
        self._skipped: list[str] = []
        self._unnamed = 0
        self._looked = 0
        self._files = 0
        self._bytes = 0

    def __iter__(self) -> Iterator[Found]:
        with held(os.open(self._folder, _AS_ITSELF | os.O_DIRECTORY)) as handle:
            top = _opened(handle)  # its tool may have closed it behind itself
        with held(top):
            yield from self._in(top, ())

    @property
    def skipped(self) -> tuple[str, ...]:
        """Skipped entries with the reason, one text each; at most ``TOLD_MAX``, and one for the others."""
        return (*self._skipped, *((f"{self._unnamed} more",) if self._unnamed else ()))

    def _in(self, folder: int, above: tuple[bytes, ...]) -> Iterator[Found]:
        names = self._names(folder, above)
        obeyed = {os.fsencode(REPOSITORY)} if is_repository([os.fsdecode(name) for name in names]) else set()
        for name in names:
            parts = (*above, name)
            if name in obeyed or os.fsdecode(name).lower() in PROTECTED:
                self._skip(parts, "programs obey what has this name")
                continue
            try:
                handle = os.open(name, _AS_ITSELF, dir_fd=folder)
            except OSError as error:
                self._skip(parts, f"cannot be opened: {error.strerror}")
                continue
            with held(handle):
                found = os.fstat(handle)
                if stat.S_ISDIR(found.st_mode):
                    yield from self._below(handle, parts)
                else:
                    yield from self._file(handle, found, parts)

    def _names(self, folder: int, above: tuple[bytes, ...]) -> list[bytes]:
        """The first of a folder's names, sorted, as many as may still be looked at: the same whatever order the file
        system has, and never more in memory."""
        room = self._bounds.entries - self._looked
        if room <= 0:
            self._skip(above, f"is not looked into: {self._bounds.entries} entries were")
            return []
        total = 0

        def counted(entries: Iterator[os.DirEntry[str]]) -> Iterator[bytes]:
            nonlocal total
            for entry in entries:
                total += 1
                yield os.fsencode(entry.name)

        with _entries(folder) as entries:
            names = heapq.nsmallest(room, counted(entries))
        self._looked += len(names)
        if total > room:
            self._skip(above, f"{total - room} of its {total} entries are not looked at")
        return names

    def _below(self, handle: int, parts: tuple[bytes, ...]) -> Iterator[Found]:
        if len(parts) > self._bounds.depth:
            self._skip(parts, f"lies deeper than {self._bounds.depth} folders")
            return
        try:
            folder = os.open(f"/proc/self/fd/{handle}", _READ | os.O_DIRECTORY)
        except OSError as error:
            self._skip(parts, f"cannot be looked into: {error.strerror}")
            return
        with held(folder):
            yield from self._in(folder, parts)

    def _file(self, handle: int, found: os.stat_result, parts: tuple[bytes, ...]) -> Iterator[Found]:
        path = _path(parts)
        reason = "its name cannot be kept" if path is None else self._against(found)
        if path is None or reason:
            self._skip(parts, reason)
            return
        try:
            descriptor = os.open(f"/proc/self/fd/{handle}", _READ | os.O_NONBLOCK)
        except OSError as error:
            self._skip(parts, f"cannot be opened: {error.strerror}")
            return
        self._files += 1
        self._bytes += found.st_size
        with open(descriptor, "rb") as content:
            yield Found(path, found.st_size, content)

    def _against(self, found: os.stat_result) -> str:
        """Why a file is not taken; "" when it is."""
        bounds = self._bounds
        if stat.S_ISLNK(found.st_mode):
            return "is a link"
        if not stat.S_ISREG(found.st_mode):
            return "is no regular file"
        if found.st_nlink > 1:
            return "has a second name (hard link)"
        if found.st_size > bounds.file_bytes:
            return f"has {found.st_size} bytes, more than {bounds.file_bytes}"
        if self._files >= bounds.files:
            return f"comes after {bounds.files} files"
        if self._bytes + found.st_size > bounds.total_bytes:
            return f"with it there were more than {bounds.total_bytes} bytes"
        return ""

    def _skip(self, parts: tuple[bytes, ...], reason: str) -> None:
        if len(self._skipped) < TOLD_MAX:
            self._skipped.append(f"{_shown(parts)}: {reason}")
        else:
            self._unnamed += 1


def remove(folder: str) -> None:
    """Delete ``folder`` with all that is in it, however deep, many, or closed to its owner; nothing where there is
    none. Links are removed, never followed. Raises OSError where that cannot be, and where ``folder`` is a link."""
    try:
        top = os.open(folder, _AS_ITSELF | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    with held(top):
        _empty(_opened(top))
    os.rmdir(folder)


def _empty(top: int) -> None:
    """Delete what is in ``top`` and close it. Folders in folders are moved up into ``top`` first, so that no path gets
    long and never more than a few descriptors are open."""
    with held(top):
        moved = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
        while names := _some(top):
            for name in names:
                if _unlinked(name, top):
                    continue
                with held(os.open(name, _AS_ITSELF | os.O_DIRECTORY, dir_fd=top)) as handle:
                    _flatten(_opened(handle), top, moved)
                os.rmdir(name, dir_fd=top)


def _flatten(folder: int, top: int, moved: Iterator[str]) -> None:
    """Delete the files of ``folder``, move its folders into ``top``, and close it."""
    with held(folder):
        while names := _some(folder):
            for name in names:
                if not _unlinked(name, folder):
                    with held(os.open(name, _AS_ITSELF | os.O_DIRECTORY, dir_fd=folder)) as handle:
                        _claim(handle)  # a folder that moves has to be writable itself, for its ``..``
                    os.rename(name, next(moved), src_dir_fd=folder, dst_dir_fd=top)


def _opened(handle: int) -> int:
    """A descriptor to list a folder by."""
    _claim(handle)
    return os.open(f"/proc/self/fd/{handle}", _READ | os.O_DIRECTORY)


def _claim(handle: int) -> None:
    """Give a folder's owner every right to it."""
    if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
        os.chmod(f"/proc/self/fd/{handle}", 0o700)


def _unlinked(name: bytes, folder: int) -> bool:
    """Whether ``name`` is gone; a folder stays."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _some(folder: int) -> list[bytes]:
    with _entries(folder) as entries:
        return [os.fsencode(entry.name) for entry in itertools.islice(entries, _BATCH)]


@contextlib.contextmanager
def _entries(folder: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a folder, from the first; the position of a descriptor belongs to all that were copied from it."""
    os.lseek(folder, 0, os.SEEK_SET)
    with os.scandir(folder) as entries:
        yield entries


def _path(parts: tuple[bytes, ...]) -> str | None:
    """The path as Orchestra's documents hold it; None where they cannot."""
    try:
        return msgspec.convert(b"/".join(parts).decode("utf-8"), RelativePath)
    except (UnicodeDecodeError, msgspec.ValidationError):
        return None


def _shown(parts: tuple[bytes, ...]) -> str:
    """A path for people, in ASCII and in one line."""
    text = ascii(b"/".join(parts).decode("utf-8", "backslashreplace") or ".")[1:-1]
    return text if len(text) <= _NAME_CHARS_MAX else f"{text[:_NAME_CHARS_MAX]}..."
