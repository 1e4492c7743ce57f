"""Replaces a file's content as one step: readers see the old bytes or the new ones, also after a crash; and reads the
beginning of a file that foreign programs may have exchanged for something else."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pmagent.events.tree import held

TRIES: Final = 5
"""A temporary file that somebody removes meanwhile (``git clean``) is written again, so often at most."""


def write_atomic(path: Path, content: bytes, mode: int = 0o644, last_look: Callable[[], None] = lambda: None) -> None:
    """Make ``content`` the content of ``path``, with exactly the permission bits ``mode``.

    Temporary file beside it, sync, rename, sync of the folder. The folder must exist. Raises OSError; the old
    file is then untouched, except when only the last sync failed. A symbolic link at ``path`` is refused
    (ELOOP): what it points to may be anywhere, and replacing the link is hardly what its maker wanted.
    ``last_look`` is called right before the replacement; what it raises is raised, and nothing is replaced.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "refusing to replace a symbolic link", str(path))
    with held(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
        for left in reversed(range(TRIES)):
            try:
                _replace(folder, path.name, content, mode, last_look)
                break
            except FileNotFoundError:
                if not left:
                    raise
        os.fsync(folder)


def _replace(folder: int, name: str, content: bytes, mode: int, last_look: Callable[[], None]) -> None:
    temporary = f".{name[:200]}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        last_look()
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def read_plain(path: Path, most: int, flags: int = 0) -> bytes:
    """The first ``most`` bytes of a plain file, and one more where it is longer. A pipe, for whose writer we would wait
    for ever, and a device, which may have no end, are refused (EINVAL). ``flags``: more of those of ``os.open``. Raises
    OSError."""
    with held(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)) as found:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        with open(found, "rb", closefd=False) as file:
            return file.read(most + 1)
