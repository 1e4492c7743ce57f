"""One writer: an exclusive lock on ``LOCK``, held for life (DESIGN §2).

``flock`` belongs to the open file, so it is gone when the process is, however it ended; a stale file means nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

from events.errors import LogLocked

TRIES: Final = 10
TRY_SECONDS: Final = 0.01
"""A lock that is held through so many tries, so far apart, is a writer's."""


class WriterLock:
    """The held lock. ``holder`` is written into the file for people. Raises LogLocked when another process has it."""

    def __init__(self, path: Path, holder: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not _taken(self._descriptor):
                raise LogLocked(str(path), os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip())
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{holder}\n".encode(), 0)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let go of the lock. Idempotent."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


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


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
