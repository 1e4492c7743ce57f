"""Files below a folder that foreign programs may write in too: reached step by step, never through a link.

Each step is opened from the folder that it lies in, so nobody who moves or links folders meanwhile leads us elsewhere.
Folders on the way may be links that stay below the root when the work begins; what is opened is where they led then.

A new file or folder is closed to other users, whatever the umask says, unless it is ``shared``. A file that others may
read already stays readable for them, and nothing is ever opened to them.

The last parts of a path may be ``own``: they belong to the writer alone. A write there finds its place:
links, and what else is in the way, are moved aside (to ``NAME.aside-<random>``), never followed and never deleted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES: Final = 1 << 20
_TRIES: Final = 8
_KNOWN_MAX: Final = 1_000
_NOT_THERE: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))

Mark = tuple[int, int, int, int]
"""Tells whether a file is still the one that was written: device, inode, size, time of its last change."""


class LeadsOut(Exception):
    """A link on the way leads out of the root, or in a circle."""


class Tree:
    """The files below ``root``, which must exist; paths are relative to it, their parts divided by ``/``. Blocking."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._known: dict[str, tuple[str, ...]] = {}
        """Where folders that are shared led when they were looked at last."""

    def look_again(self) -> None:
        """Work begins: where folders lead is looked at anew. Changes during the work lead to errors."""
        self._known.clear()

    def read(self, path: str, own: int = 0) -> Iterator[bytes]:
        """The content of a regular file, piece by piece. Raises LeadsOut, OSError (FileNotFoundError, or
        NotADirectoryError, where there is none; EISDIR for a folder; ELOOP for a link; EINVAL for what else)."""
        with self._folder(path, make=False, own=own) as (folder, name):
            descriptor = os.open(name, _READ, dir_fd=folder)
        with open(descriptor, "rb", buffering=0) as file:
            _check_regular(os.fstat(descriptor).st_mode)
            while piece := file.read(_READ_BYTES):
                yield piece

    def size(self, path: str, own: int = 0) -> int:
        """The size of a regular file in bytes. Raises as ``read`` does."""
        with self._folder(path, make=False, own=own) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        _check_regular(found.st_mode)
        return found.st_size

    def mark(self, path: str, own: int = 0) -> Mark | None:
        """The mark of the regular file at ``path``: another or a changed file has another; None where there is none, or
        only behind a link. Raises OSError."""
        try:
            with self._folder(path, make=False, own=own) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except LeadsOut:
            return None
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise
        return _mark(found) if stat.S_ISREG(found.st_mode) else None

    def replace(
        self, path: str, pieces: Iterable[bytes], *, sync: bool = True, own: int = 0, shared: bool = False
    ) -> Mark:
        """Make ``pieces`` the content of ``path``, as one step: a temporary file beside it, then a new name. Folders
        on the way are made. A link or a folder at ``path`` itself is refused, where not even the last part of it is
        ``own``. ``sync``: durable when this returns. ``shared``: others may read what is made, as the umask says; a
        file that takes another's place has that one's permissions.

        Raises LeadsOut, OSError; what stood there stays then, except when only the last sync failed.
        """
        with self._folder(path, make=True, own=own, shared=shared) as (folder, name):
            mode, kept = 0o644 if shared else 0o600, 0
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if own and not stat.S_ISREG(found.st_mode):
                    _move_aside(folder, name)
                elif stat.S_ISLNK(found.st_mode):
                    raise OSError(errno.ELOOP, "refusing to replace a symbolic link")
                elif shared:
                    kept = found.st_mode & 0o777
                else:  # somebody may have let others read it
                    mode |= stat.S_IMODE(found.st_mode) & 0o044
            temporary = f".pmagent.{os.getpid()}.{os.urandom(6).hex()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, mode if shared else 0o600, dir_fd=folder)
            try:
                with open(descriptor, "wb") as file:
                    file.writelines(pieces)
                    if kept or not shared:
                        os.fchmod(descriptor, kept or mode)
                    file.flush()
                    if sync:
                        os.fsync(descriptor)
                    mark = _mark(os.fstat(descriptor))
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            if sync:
                os.fsync(folder)
        return mark

    def begin(self, path: str, *, own: int = 0, shared: bool = False) -> bool:
        """Make an empty file at ``path``, and the folders on the way; False: something stands there, and stays. It may
        be gone after a power loss. Raises LeadsOut, OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder(path, make=True, own=own, shared=shared) as (folder, name):
            try:
                os.close(os.open(name, flags, 0o644 if shared else 0o600, dir_fd=folder))
            except FileExistsError:
                return False
        return True

    def extend(self, path: str, mark: Mark, pieces: Iterable[bytes], own: int = 0) -> Mark | None:
        """Add ``pieces`` at the end of ``path``, if it is still what ``mark`` says, and make them durable; None, and
        nothing is written, when it is not. Raises LeadsOut, OSError; some of it may be there then."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            with self._folder(path, make=False, own=own) as (folder, name):
                descriptor = os.open(name, flags, dir_fd=folder)
        except LeadsOut:
            return None
        except OSError as error:
            if error.errno in {*_NOT_THERE, errno.EISDIR, errno.ENXIO, errno.EACCES}:
                return None
            raise
        with open(descriptor, "wb") as file:
            if _mark(os.fstat(descriptor)) != mark:
                return None
            file.writelines(pieces)
            file.flush()
            os.fdatasync(descriptor)
            return _mark(os.fstat(descriptor))

    def exists(self, path: str, own: int = 0) -> bool:
        """Whether anything stands at ``path``, a link too. Raises LeadsOut, OSError."""
        try:
            with self._folder(path, make=False, own=own) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise
        return True

    def remove(self, path: str, own: int = 0) -> bool:
        """Remove what stands at ``path``, a folder with all that is in it; links are not followed. Whether there was
        anything. Raises LeadsOut, OSError."""
        try:
            with self._folder(path, make=False, own=own) as (folder, name):
                try:
                    os.unlink(name, dir_fd=folder)
                except IsADirectoryError:
                    _remove_folder(folder, name)
                os.fsync(folder)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise
        return True

    def make_folder(self, path: str) -> None:
        """Make the folder at ``path`` and those on the way to it; those that are there stay. Raises LeadsOut, OSError
        (NotADirectoryError, or ELOOP, for what is none)."""
        with self._folder(f"{path}/", make=True):
            pass

    @contextmanager
    def _folder(self, path: str, *, make: bool, own: int = 0, shared: bool = False) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder in which ``path`` lies, and its name there."""
        mode = (0o755 if shared else 0o700) if make else 0
        *above, name = path.split("/")
        common = len(above) + 1 - own if own else len(above)
        folder = os.open(self._root, _FOLDER)
        try:
            for part in self._resolved(above[:common]):
                folder = _entered(folder, part, mode)
            for part in above[common:]:
                folder = _entered_own(folder, part, mode)
            yield folder, name
        finally:
            os.close(folder)

    def _resolved(self, above: list[str]) -> tuple[str, ...]:
        """The folders on the way, links replaced by what they lead to. Raises LeadsOut."""
        wanted = "/".join(above)
        if (known := self._known.get(wanted)) is not None:
            return known
        try:
            found = (self._root / wanted).resolve()
        except (OSError, RuntimeError):  # what a circle raises depends on the Python version
            raise LeadsOut from None
        if not found.is_relative_to(self._root):
            raise LeadsOut
        parts = found.relative_to(self._root).parts
        if len(self._known) < _KNOWN_MAX:
            self._known[wanted] = parts
        return parts


@contextmanager
def held(descriptor: int) -> Iterator[int]:
    """``descriptor``, which is closed at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _entered(folder: int, part: str, mode: int) -> int:
    """The folder ``part`` in ``folder``, which is closed if it could be opened. It is made with ``mode`` (0: it is not
    made)."""
    if mode:
        with suppress(FileExistsError):
            os.mkdir(part, mode, dir_fd=folder)
    inner = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return inner


def _entered_own(folder: int, part: str, mode: int) -> int:
    """The same, where nothing else may stand. Raises OSError, too where somebody puts things there without end."""
    for _ in range(_TRIES if mode else 0):
        try:
            return _entered(folder, part, mode)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            with suppress(FileNotFoundError):
                _move_aside(folder, part)
    return _entered(folder, part, mode)


def remove_folder(path: str) -> None:
    """Remove the folder at ``path`` with all that is in it, however deep; links in it are not followed. Raises
    OSError."""
    with held(os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as above:
        _remove_folder(above, os.path.basename(path))


def _remove_folder(above: int, name: str) -> None:
    """Remove the folder ``name`` with all that is in it, however deep: what lies deeper is moved up first. Raises
    OSError."""
    with held(os.open(name, _FOLDER, dir_fd=above)) as top:
        while names := os.listdir(top):
            for one in names:
                with suppress(FileNotFoundError):  # others may clear it away, too
                    _remove_from(top, one)
    os.rmdir(name, dir_fd=above)


def _remove_from(top: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=top)
    except IsADirectoryError:
        with held(os.open(name, _FOLDER, dir_fd=top)) as folder:
            for one in os.listdir(folder):
                with suppress(FileNotFoundError):
                    _lift(folder, one, top)
        os.rmdir(name, dir_fd=top)


def _lift(folder: int, name: str, top: int) -> None:
    """Remove what is no folder, or an empty one; move another one to ``top``."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            lifted = f".pmagent.{os.urandom(8).hex()}.gone"
            os.rename(name, lifted, src_dir_fd=folder, dst_dir_fd=top)


def _move_aside(folder: int, name: str) -> None:
    os.rename(name, f"{name[:60]}.aside-{os.urandom(4).hex()}", src_dir_fd=folder, dst_dir_fd=folder)


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "no regular file")


def _mark(found: os.stat_result) -> Mark:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
