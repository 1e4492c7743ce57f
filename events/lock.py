"""One writer: an exclusive lock on ``LOCK``, held for life (DESIGN §2).

``flock`` belongs to the open file, so it is gone when the process is, however it ended; a stale file means nothing.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from events.errors import LogLocked


class WriterLock:
    """The held lock. ``holder`` is written into the file for people. Raises LogLocked when another process has it."""

    def __init__(self, path: Path, holder: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._descriptor)
            raise LogLocked(str(path), text) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{holder}\n".encode(), 0)

    def release(self) -> None:
        """Let go of the lock. Idempotent."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


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
