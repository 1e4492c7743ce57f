"""Storage: where lines are kept. A protocol, with local segments as the embedded default (docs/design.md §2.8).

It holds no idea of files, so that a database can implement it: one batch is one row, appended if the tail is still
the expected one. One contract test suite runs over every implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from events.event import Tail

CHUNK_BYTES: Final = 1 << 20
"""How much a reader takes at once unless it says otherwise. Memory does not grow with the log."""


class StorageReader(Protocol):
    """Reading what is durable. Readers in other processes have this and never repair anything."""

    def tail(self) -> Tail:
        """The durable end of the log, as of now."""
        ...

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """Whole durable lines from ``position`` on, as they are stored: at least one line, and then as many as fit
        ``bytes_max``; ``b""`` behind the tail. Unchecked: ``events.reader`` checks the chain.

        Raises CorruptLog when the line cannot be found though the tail covers it; ValueError for position < 1.
        """
        ...

    def place(self, position: int) -> tuple[str, int]:
        """Where the line of ``position`` stands, for messages: the name of what holds it, and the byte offset there.
        Answers for a damaged line too."""
        ...


class Storage(StorageReader, Protocol):
    """One writer's view: reading, and appending batches."""

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """Make ``lines`` durable behind ``expected``; ``tail`` is the new end. Durable when it returns.

        Raises TailMoved when the storage's tail is not ``expected``, BadEvent when the lines do not follow it
        (``events.line.check_batch``); nothing is written then. OutcomeUnknown when a write or sync failed, or somebody
        else has changed what is stored: the storage is then poisoned, and raises it for every further call.
        """
        ...

    def settle(self) -> None:
        """Called on idle, and then every second: whatever helps a later opening (the HEAD of segments) becomes durable
        too, and the storage looks whether all is still there. Raises OutcomeUnknown."""
        ...

    def close(self) -> None:
        """Settle and let go of what is held. Idempotent."""
        ...
