"""Reading events, checked: every line read is checked against the chain before anybody sees it (docs/design.md §2.1).

``runs`` and ``events`` go through what is durable and end; ``Follower`` goes on with what becomes durable.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Final

import msgspec

from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import StoredEvent, Tail
from pmagent.events.line import ChainChecker, decode_chunk, decode_line
from pmagent.events.storage import StorageReader


class Progress(Enum):
    """Yielded by a follower between events: it has read everything that was durable when it looked."""

    CAUGHT_UP = "caught up"


CAUGHT_UP: Final = Progress.CAUGHT_UP

RUN_BYTES: Final = 256 * 1024
"""How much is read, checked and decoded at once: what stays in the processor's cache meanwhile."""

_WAIT_SECONDS: Final = 60.0
"""A follower without a ``wait`` of its own waits so long for news at once."""


class Reader:
    """Goes through the log from ``position`` on, checking the chain. Raises ValueError for a position < 1.

    Memory is bounded by the chunk size, whatever the length of the log.
    """

    def __init__(self, storage: StorageReader, position: int = 1, chunk_bytes: int = RUN_BYTES) -> None:
        if position < 1:
            raise ValueError("positions start at 1")
        self._storage = storage
        self._chunk_bytes = chunk_bytes
        self._start = position
        self._checker: ChainChecker | None = None

    @property
    def tail(self) -> Tail:
        """The last event that was read (of the one before the first, at first)."""
        return self._checker.tail if self._checker else Tail(self._start - 1)

    def next_lines(self, chunk: bytes = b"") -> bytes:
        """The next durable lines, whose chain is intact, b"" when all are read. ``chunk``: the lines, if the caller has
        read them. Raises CorruptLog at the first bad one."""
        checker = self._checker or self._begin()
        if checker is None:
            return b""
        position = checker.tail.position + 1
        chunk = chunk or self._storage.read(position, self._chunk_bytes)
        fault = checker.check(chunk) if chunk else None
        intact = chunk[: fault.offset] if fault else chunk  # what is intact is handed out first
        if fault is not None and not intact:
            raise self._corrupt(position, fault.reason)
        return intact

    def next_run(self, chunk: bytes = b"") -> Sequence[StoredEvent]:
        """``next_lines``, decoded; [] when all are read. Raises CorruptLog at the first that is no event, too."""
        if (checker := self._checker or self._begin()) is None:
            return []
        before = checker.tail
        position = before.position + 1
        intact = self.next_lines(chunk)
        if not intact:
            return []
        try:
            run = decode_chunk(intact)
        except msgspec.DecodeError:
            run = self._until_malformed(before, intact)
        if [event.position for event in run] != list(range(position, position + len(run))):
            for index, event in enumerate(run, position):
                if event.position != index:  # its beginning was checked: it has the field twice
                    raise self._corrupt(index, f"position {event.position} stands there, too")
        return run

    def _begin(self) -> ChainChecker | None:
        """The checker behind the line before the start: its claimed sum links the first line."""
        if self._start == 1:
            self._checker = ChainChecker(Tail())
            return self._checker
        line = self._storage.read(self._start - 1, 1)
        if not line:
            return None
        try:
            before = decode_line(line)
            self._checker = ChainChecker(Tail(before.position, before.batch, before.time, before.sum))
        except ValueError as error:  # msgspec's are ValueErrors too
            raise self._corrupt(self._start - 1, f"malformed: {error}") from error
        if before.position != self._start - 1:
            raise self._corrupt(self._start - 1, f"position {before.position} stands there")
        return self._checker

    def _until_malformed(self, before: Tail, lines: bytes) -> Sequence[StoredEvent]:
        """The events before the first line that is no event though its sum fits (somebody computed the chain anew)."""
        found: list[StoredEvent] = []
        end = 0
        for line in lines.split(b"\n")[:-1]:
            try:
                found.append(decode_line(line))
            except msgspec.DecodeError as error:
                if not found:
                    raise self._corrupt(before.position + 1, f"not an event: {error}") from error
                break
            end += len(line) + 1
        self._checker = ChainChecker(before)
        self._checker.check(lines[:end])
        return found

    def _corrupt(self, position: int, reason: str) -> CorruptLog:
        return CorruptLog(*self._storage.location(position), position, reason)


def runs(
    storage: StorageReader, position: int = 1, until: int | None = None, chunk_bytes: int = RUN_BYTES
) -> Iterator[Sequence[StoredEvent]]:
    """Runs of durable events from ``position`` to ``until`` (included; default: the end as it moves).

    Raises CorruptLog; ValueError for a position < 1.
    """
    reader = Reader(storage, position, chunk_bytes)
    if until is not None and until < position:
        return
    while run := reader.next_run():
        if until is not None and run[-1].position >= until:
            yield run[: until - run[0].position + 1]
            return
        yield run


Needles = Sequence[Sequence[bytes]]
"""Bytes that a wanted line holds: at least one of each group."""


def matching_runs(
    storage: StorageReader, position: int, until: int, needles: Needles
) -> Iterator[tuple[Sequence[StoredEvent], int]]:
    """Stretches of the log from ``position`` to ``until``: checked runs of events where the bytes match ``needles``
    (other events may be among them), no events where they do not; each with the last position that it covers.

    Stretches without a match are neither decoded nor checked, which saves most of the work. Without needles every event
    is read. Raises CorruptLog.
    """
    reader: Reader | None = None  # goes on where the stretch before matched, too
    while position <= until and (chunk := storage.read(position, RUN_BYTES)):
        last = position + chunk.count(b"\n") - 1
        if all(any(needle in chunk for needle in group) for group in needles):
            reader = reader or Reader(storage, position)
            run = reader.next_run(chunk)
            last = run[-1].position  # what is intact before a bad line
            yield run[: until - position + 1], min(last, until)
        else:
            reader = None
            yield (), min(last, until)
        position = last + 1


def events_of_types(
    storage: StorageReader, position: int, types: Collection[str], *needles: bytes
) -> Iterator[StoredEvent]:
    """Durable events of these types from ``position`` on, as far as their lines hold each of ``needles``; see
    ``matching_runs``. Raises CorruptLog."""
    groups = ([msgspec.json.encode(name) for name in types], *([one] for one in needles))
    for run, _ in matching_runs(storage, position, storage.tail().position, groups):
        yield from (event for event in run if event.type in types)


def events(storage: StorageReader, position: int = 1, until: int | None = None) -> Iterator[StoredEvent]:
    """Durable events from ``position`` to ``until``, one by one."""
    for run in runs(storage, position, until):
        yield from run


def event_at(storage: StorageReader, position: int) -> StoredEvent:
    """The event at ``position``, checked against the one before it. Raises NotFound behind the tail."""
    for run in runs(storage, position, position, chunk_bytes=1):  # its line alone
        return run[0]
    raise NotFound(f"the log has no position {position}; its tail is {storage.tail().position}")


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector from running within the block, which goes through a long log: events and states hold
    no cycles, so its rounds would find nothing, however many of them there are."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Follower:
    """Follows the log from ``position``: catches up, says so once, then stays live, across segment rolls.

    It reads at its own pace from storage, so a slow follower slows nobody and holds one chunk at most.
    """

    def __init__(self, storage: StorageReader, position: int = 1, chunk_bytes: int = RUN_BYTES) -> None:
        self._storage = storage
        self._reader = Reader(storage, position, chunk_bytes)
        self._caught_up = False

    @property
    def position(self) -> int:
        """The next position that it will hand out."""
        return self._reader.tail.position + 1

    def poll(self) -> Sequence[StoredEvent] | Progress | None:
        """The next events; ``CAUGHT_UP`` once, when there are none for the first time; then None for none."""
        if run := self._reader.next_run():
            return run
        if not self._caught_up:
            self._caught_up = True
            return CAUGHT_UP
        return None

    def follow(self, wait: Callable[[], bool] | None = None) -> Iterator[Sequence[StoredEvent] | Progress]:
        """``poll`` for ever. ``wait`` is called while there is nothing new and ends the following by False;
        the default waits for news for ever."""
        while True:
            if (found := self.poll()) is not None:
                yield found
            elif wait is None:
                self._storage.changes(self.position - 1, _WAIT_SECONDS)
            elif not wait():
                return
