"""Storage in memory, for tests that need no disk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice

from pmagent.events.errors import TailMoved
from pmagent.events.event import Tail
from pmagent.events.line import check_batch
from pmagent.events.storage import CHUNK_BYTES


class MemoryStorage:
    """The storage contract over a list of lines. ``log_id``: the log's id."""

    recovered: None = None
    is_local = True
    reads_files = False
    lease: None = None
    taken_over: None = None
    age = (0, 0)

    def __init__(self, log_id: str = "0" * 32) -> None:
        self._log_id = log_id
        self._lines: list[bytes] = []
        self._tail = Tail()
        self._grown = threading.Condition()

    def tail(self) -> Tail:
        """See StorageReader."""
        return self._tail

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        if position < 1:
            raise ValueError("positions start at 1")
        taken: list[bytes] = []
        size = 0
        for line in islice(self._lines, position - 1, None):
            size += len(line)
            if taken and size > bytes_max:
                break
            taken.append(line)
        return b"".join(taken)

    def location(self, position: int) -> tuple[str, int]:
        """See StorageReader."""
        return "memory", sum(map(len, self._lines[: position - 1]))

    def changes(self, position: int, seconds: float) -> bool:
        """See StorageReader."""
        with self._grown:
            return self._grown.wait_for(lambda: self._tail.position > position, seconds)

    def log_id(self) -> str:
        """See LogReader."""
        return self._log_id

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage."""
        if expected != self._tail:
            raise TailMoved(f"the tail is at position {self._tail.position}, not {expected.position}")
        check_batch(expected, lines, tail)
        with self._grown:
            self._lines.extend(lines)
            self._tail = tail
            self._grown.notify_all()

    def settle(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""
