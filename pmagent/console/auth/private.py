"""Files that only this user may read or write, and that decide who is let in: read with suspicion
(docs/design.md §18.2).

A file that somebody else could have written, or read, counts for nothing: another owner, a mode that lets others in, a
link, a second name, anything that is no plain file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 1 << 20
"""None of these files is longer."""


class NotPrivate(Exception):
    """The file cannot be trusted; the text says why, the ``hint`` what would mend it."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


def read_private(path: Path) -> bytes:
    """The content of a file that is this user's alone. Raises NotPrivate, FileNotFoundError, OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivate(f"{path} is a link", f"look who made it; then rm {path}") from error
        raise
    try:
        _check(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(FILE_BYTES_MAX + 1)
    finally:
        os.close(descriptor)
    if len(content) > FILE_BYTES_MAX:
        raise NotPrivate(f"{path} is longer than {FILE_BYTES_MAX} bytes", f"look who wrote it; then rm {path}")
    return content


def _check(path: Path, found: os.stat_result) -> None:
    """Raises NotPrivate where somebody else may have a hand in it."""
    look = f"look who made it; then rm {path}"
    if not stat.S_ISREG(found.st_mode):
        raise NotPrivate(f"{path} is no file", look)
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another user ({found.st_uid})", look)
    if found.st_nlink != 1:
        raise NotPrivate(f"{path} has another name too", look)
    if found.st_mode & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        what = f"{path} may be read or written by others (mode {mode})"
        raise NotPrivate(what, f"look what it says, then chmod 600 {path}")


def check_folder(path: Path) -> None:
    """Look whether only this user can put anything into the folder. Raises NotPrivate, OSError."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise NotPrivate(f"{path} is no folder of this user's", f"look who made it; then rm -r {path}")
    if found.st_mode & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        raise NotPrivate(f"{path} is open to others (mode {mode})", f"look what lies there; chmod 700 {path}")
