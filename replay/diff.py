"""Two logs side by side: where they first differ, and how much of what each holds (DESIGN §5).

The common beginning is read once and forgotten. Behind the first difference the logs are aligned in bounded windows by
what the events say: kind, actor, type and data; times, and ids and correlations, only if asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import Match, SequenceMatcher, unified_diff
from pathlib import Path
from typing import Final

import msgspec

from events.disk import RealDisk
from events.event import StoredEvent
from events.reader import Reader
from events.segments import SegmentReader
from events.storage import StorageReader

WINDOW: Final = 1024
"""Behind the first difference, so many events of each log are aligned at a time."""

CHUNK_BYTES: Final = 128 * 1024
CONTEXT: Final = 3


class TypeCount(msgspec.Struct, frozen=True):
    """How many events of ``type`` by ``actor`` stand only in the one log, only in the other."""

    actor: str
    type: str
    only_a: int
    only_b: int


class FirstDifference(msgspec.Struct, frozen=True):
    """The first events that differ: their positions (0: that log has ended), and a diff of them, with what precedes."""

    position_a: int
    position_b: int
    lines: list[str]


class LogDiff(msgspec.Struct, frozen=True):
    """How two logs compare. ``common`` events precede the first difference; ``matched`` ones behind it were found in
    both. ``types`` counts the others."""

    common: int
    matched: int
    events_a: int
    events_b: int
    first: FirstDifference | None
    types: list[TypeCount]

    @property
    def equal(self) -> bool:
        """Whether both hold the same events."""
        return self.first is None


def diff_logs(
    a: str | Path | StorageReader, b: str | Path | StorageReader, *, times: bool = False, ids: bool = False
) -> LogDiff:
    """Compare two logs (folders or storages). ``times`` compares times too, ``ids`` ids and correlations; without
    ``ids`` what two runs with different sources have in common is found. The logs' own remarks (log.*) are left out.

    Memory is bounded by ``WINDOW`` events of each. Raises CorruptLog, NotFound.
    """
    opened: list[SegmentReader] = []
    try:
        readers: list[StorageReader] = []
        for log in (a, b):
            if isinstance(log, (str, Path)):
                reader = SegmentReader(RealDisk(), str(log))
                opened.append(reader)
                readers.append(reader)
            else:
                readers.append(log)
        return _Comparison(times, ids).run(_events(readers[0]), _events(readers[1]))
    finally:
        for reader in opened:
            reader.close()


def _events(storage: StorageReader) -> Iterator[StoredEvent]:
    reader = Reader(storage, 1, CHUNK_BYTES)
    while run := reader.next_run():
        for event in run:
            if not event.type.startswith("log."):
                yield event


Key = tuple[str | bytes, ...]


class _Comparison:
    def __init__(self, times: bool, ids: bool) -> None:
        self._times = times
        self._ids = ids
        self._only: tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]] = (Counter(), Counter())
        self._matched = 0

    def run(self, a: Iterator[StoredEvent], b: Iterator[StoredEvent]) -> LogDiff:
        common = 0
        last: StoredEvent | None = None
        while True:
            one, other = next(a, None), next(b, None)
            if one is None and other is None:
                return LogDiff(common, 0, common, common, None, [])
            if one is None or other is None or self._key(one) != self._key(other):
                break
            common += 1
            last = one
        first = FirstDifference(one.position if one else 0, other.position if other else 0, _lines(last, one, other))
        read = self._align(_with_first(one, a), _with_first(other, b))
        return LogDiff(common, self._matched, common + read[0], common + read[1], first, self._counts())

    def _key(self, event: StoredEvent) -> Key:
        key: Key = (event.kind, event.actor, event.type, event.correlation if self._ids else "", bytes(event.data))
        if self._ids:
            key = (*key, event.id)
        return (*key, event.time) if self._times else key

    def _align(self, a: Iterator[StoredEvent], b: Iterator[StoredEvent]) -> tuple[int, int]:
        read = [0, 0]
        held: list[list[StoredEvent]] = [[], []]
        while True:
            ended = True
            for side, source in enumerate((a, b)):
                for event in source:
                    held[side].append(event)
                    read[side] += 1
                    if len(held[side]) >= WINDOW:
                        ended = False
                        break
            blocks = SequenceMatcher(
                None, [self._key(event) for event in held[0]], [self._key(event) for event in held[1]], autojunk=False
            ).get_matching_blocks()
            done = self._count(blocks, held, ended)
            if ended:
                return read[0], read[1]
            del held[0][: done[0]]
            del held[1][: done[1]]

    def _count(self, blocks: list[Match], held: list[list[StoredEvent]], ended: bool) -> tuple[int, int]:
        """Count what the windows hold up to their last match (to their ends, when both logs have ended, or when there
        is no match to go on from)."""
        matches = [block for block in blocks if block.size]
        if not ended and matches:
            last = matches[-1]  # half a window is left behind at least, or a lone early match would hold everything up
            end = (max(last.a + last.size, len(held[0]) // 2), max(last.b + last.size, len(held[1]) // 2))
        else:
            end = (len(held[0]), len(held[1]))
        at = (0, 0)
        for block in [*matches, None]:
            until = (block.a, block.b) if block else end
            for side in (0, 1):
                self._only[side].update((event.actor, event.type) for event in held[side][at[side] : until[side]])
            if block:
                self._matched += block.size
                at = (block.a + block.size, block.b + block.size)
        return end

    def _counts(self) -> list[TypeCount]:
        only_a, only_b = self._only
        return [TypeCount(*key, only_a[key], only_b[key]) for key in sorted({*only_a, *only_b})]


def _with_first(first: StoredEvent | None, rest: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
    if first is not None:
        yield first
        yield from rest


def _lines(last: StoredEvent | None, one: StoredEvent | None, other: StoredEvent | None) -> list[str]:
    before = [f"after position {last.position}: {last.type} by {last.actor}"] if last else ["at the beginning"]
    found = unified_diff(pretty_stored(one), pretty_stored(other), "a", "b", n=CONTEXT, lineterm="")
    return before + list(found)


def pretty_stored(event: StoredEvent | None) -> list[str]:
    """A stored event as indented JSON lines, without batch and sum; [] for None."""
    if event is None:
        return []
    parts = {
        name: getattr(event, name)
        for name in ("position", "time", "id", "kind", "actor", "type", "correlation", "causation", "data")
    }
    return msgspec.json.format(msgspec.json.encode(parts), indent=2).decode().splitlines()
