"""One writer: exclusive locks on the log's folder and beside it, held for life (docs/design.md §2.4).

The folder counts: its lock holds whatever becomes of its name, and cannot be removed without the log. The files beside
it say who the holder is, and keep out an earlier release, which locks a file alone. ``flock`` belongs to the open file,
so it is gone when the process is, however it ended; a stale file means nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from pmagent.events.errors import LogLocked

TRIES: Final = 10
TRY_SECONDS: Final = 0.01
"""A lock that is held through so many tries, so far apart, is a writer's."""


class WriterLock:
    """The held locks: on ``others`` (the log's folder, and what an earlier release locks), then on the file ``path``,
    in which ``holder`` is written for people. Files are made. Raises LogLocked when another process has one."""

    def __init__(self, path: Path, holder: str, *others: Path) -> None:
        self._descriptors: list[int] = []
        try:
            for locked in (*(other for other in others if other != path), path):
                self._descriptors.append(_opened(locked, os.O_RDWR | os.O_CREAT))
                if not _taken(self._descriptors[-1]):
                    raise LogLocked(str(locked), holder_of(path))
            os.ftruncate(self._descriptors[-1], 0)
            os.pwrite(self._descriptors[-1], f"{holder}\n".encode(), 0)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let go of the locks. Idempotent."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def holder_of(file: Path) -> str:
    """The note that the holder, or an earlier one, left about itself; "" if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _taken(descriptor: int) -> bool:
    """Take the lock. Tried for a moment: ``is_locked`` of another process may be looking just now."""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(TRY_SECONDS)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def is_locked(*paths: Path) -> bool:
    """Whether some process holds a lock on one of the paths now."""
    return any(map(_is_locked, paths))


def _is_locked(path: Path) -> bool:
    try:
        descriptor = _opened(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):  # a link is no lock of ours; a writer refuses it
            return False
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened(path: Path, flags: int) -> int:
    """A descriptor of the folder or file at ``path``; of a file only if it is no link."""
    if path.is_dir():
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
