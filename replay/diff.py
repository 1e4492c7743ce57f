"""Comparing two logs: where they part for the first time, and what each has that the other has not (docs/design.md §8).

Two events are equal when kind, actor, type and data are; times, ids and positions are each log's own. A position named
in the data counts as equal when the event there stands for the same one in the other log: one event more does not make
everything behind it differ. With ``exact`` nothing is overlooked.

Both logs are read once and checked as they are read; memory does not grow with them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pmagent.events.event import StoredEvent
from pmagent.events.evidence import log_in
from pmagent.events.reader import events
from pmagent.events.storage import StorageReader
from pmagent.replay.divergence import LISTED_MAX, unified

WINDOWS: Final = (32, 256, 4096)
"""So far ahead the place is looked for where two logs agree again: near first, then farther."""

AGREEING: Final = 3
"""So many events in a row must agree for that (fewer at a log's end)."""

STRETCHES_MAX: Final = 10_000
"""So many stretches of agreement are remembered, to translate positions."""

DifferenceKind = Literal["changed", "only in a", "only in b"]

_FIELDS: Final = frozenset(("request", "permit", "observed", "input", "position"))
"""Fields of payloads that hold the position of an event."""

_POSITION: Final = re.compile(rb'("(?:%b)":)[0-9]+' % "|".join(sorted(_FIELDS)).encode())


class Difference(msgspec.Struct, frozen=True):
    """One difference: an event that is otherwise in the other log, or not there."""

    kind: DifferenceKind
    a: StoredEvent | None
    b: StoredEvent | None

    @property
    def shown(self) -> StoredEvent:
        """The event that stands for the difference: ``a``'s, or else ``b``'s."""
        event = self.a or self.b
        assert event is not None, "a difference has one side at least"
        return event

    def lines(self) -> list[str]:
        """The difference in one line, then its details: ``-`` stands in ``a``, ``+`` in ``b``."""
        found = unified(_pretty(self.a), _pretty(self.b), "a", "b")
        places = [f"{side}: position {event.position}" for side, event in (("a", self.a), ("b", self.b)) if event]
        says = "differs" if self.kind == "changed" else f"is {self.kind}"
        return [f"{self.shown.kind} {self.shown.type} by {self.shown.actor} {says} ({', '.join(places)})", *found]


class DifferenceCount(msgspec.Struct, frozen=True):
    """How often events of ``type`` by ``actor`` differed in the way of ``kind``."""

    actor: str
    type: str
    kind: DifferenceKind
    count: int


class LogDiff(msgspec.Struct, frozen=True, kw_only=True):
    """How two logs compare. ``agreeing`` events stand in both; ``first`` is where the logs part.

    ``prefix``: so many events at the beginning agree. ``differences`` are the first ``LISTED_MAX``, ``counts`` counts
    all.
    """

    a_events: int
    b_events: int
    agreeing: int
    prefix: int
    differences: list[Difference]
    counts: list[DifferenceCount]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def first(self) -> Difference | None:
        """The first difference."""
        return self.differences[0] if self.differences else None


def diff_logs(a: str | Path | StorageReader, b: str | Path | StorageReader, *, exact: bool = False) -> LogDiff:
    """Compare two logs, each its folder or a storage. ``exact``: everything but batch and sum counts.

    Raises CorruptLog, NotFound.
    """
    with ExitStack() as closing:
        logs: list[StorageReader] = []
        for log in (a, b):
            if isinstance(log, (str, Path)):
                reader = log_in(Path(log)).reader()
                closing.callback(reader.close)
                logs.append(reader)
            else:
                logs.append(log)
        return _Comparison(logs[0], logs[1], exact).run()


class _Side:
    """One log, read a window ahead at most."""

    def __init__(self, log: StorageReader) -> None:
        self._events: Iterator[StoredEvent] = events(log)
        self.ahead: deque[StoredEvent] = deque()
        self.taken = 0

    def take(self) -> StoredEvent | None:
        """The next event; None at the end."""
        event = self.ahead.popleft() if self.ahead else next(self._events, None)
        self.taken += event is not None
        return event

    def put_back(self, event: StoredEvent | None) -> None:
        """Undo ``take``."""
        if event is not None:
            self.ahead.appendleft(event)
            self.taken -= 1

    def window(self, size: int) -> list[StoredEvent]:
        """The next events, ``size`` at most; they are not taken."""
        while len(self.ahead) < size and (event := next(self._events, None)) is not None:
            self.ahead.append(event)
        return list(islice(self.ahead, size))


class _Comparison:
    def __init__(self, a: StorageReader, b: StorageReader, exact: bool) -> None:
        self._a = _Side(a)
        self._b = _Side(b)
        self._exact = exact
        self._starts: list[int] = []  # positions in a from which on positions in b are ``_shifts`` away
        self._shifts: list[int] = []
        self._agreeing = 0
        self._prefix = 0
        self._differences: list[Difference] = []
        self._counts: Counter[tuple[str, str, DifferenceKind]] = Counter()

    def run(self) -> LogDiff:
        """Compare to the end of both."""
        while True:
            a, b = self._a.take(), self._b.take()
            if a is None and b is None:
                break
            if a is not None and b is not None and (a.sum == b.sum or self._agree(a, b)):
                self._note_agreement(a, b)
            elif a is not None and b is not None and _shape(a) == _shape(b):
                self._note("changed", a, b)
            else:
                self._a.put_back(a)
                self._b.put_back(b)
                self._part()
        return LogDiff(
            a_events=self._a.taken, b_events=self._b.taken, agreeing=self._agreeing, prefix=self._prefix,
            differences=self._differences,
            counts=[DifferenceCount(*key, number) for key, number in sorted(self._counts.items())],
        )

    def _note_agreement(self, a: StoredEvent, b: StoredEvent) -> None:
        self._agreeing += 1
        if not self._differences:
            self._prefix += 1
        shift = b.position - a.position
        if not self._shifts or self._shifts[-1] != shift:
            self._starts.append(a.position)
            self._shifts.append(shift)
            if len(self._starts) > STRETCHES_MAX:
                del self._starts[0], self._shifts[0]

    def _agree(self, a: StoredEvent, b: StoredEvent) -> bool:
        if (a.kind, a.actor, a.type) != (b.kind, b.actor, b.type):
            return False
        if self._exact and (a.id, a.time, a.correlation, a.causation) != (b.id, b.time, b.correlation, b.causation):
            return False
        ours, theirs = bytes(a.data), bytes(b.data)
        if self._exact:
            return ours == theirs
        if a.type == "log.created":
            return True  # every log has an id of its own
        if ours == theirs and (not any(self._shifts) or _POSITION.search(ours) is None):
            return True
        if _masked(ours) != _masked(theirs):
            return False
        return self._translated(msgspec.json.decode(ours), msgspec.json.decode(theirs))

    def _translated(self, a: Any, b: Any) -> bool:
        """Whether each position that differs names the same event. ``a`` and ``b`` are alike but for positions."""
        if isinstance(a, dict):
            return all(
                value + self._shift(value) == b[key]
                if key in _FIELDS and isinstance(value, int)
                else self._translated(value, b[key])
                for key, value in a.items()
            )
        return all(map(self._translated, a, b)) if isinstance(a, list) else bool(a == b)

    def _shift(self, position: int) -> int:
        index = bisect_right(self._starts, position) - 1  # -1 for 0, which names no event
        return self._shifts[index] if index >= 0 else 0

    def _part(self) -> None:
        """The next events differ: note what does, up to where the logs agree again."""
        skip_a = skip_b = 0
        for size in WINDOWS:
            meeting = _meeting(self._a.window(size), self._b.window(size), size)
            skip_a, skip_b = meeting or (min(size, len(self._a.ahead)), min(size, len(self._b.ahead)))
            if meeting is not None:
                break
        while skip_a or skip_b:
            a = self._a.take() if skip_a else None
            b = self._b.take() if skip_b else None
            skip_a -= a is not None
            skip_b -= b is not None
            if a is not None and b is not None:
                self._pair(a, b)
            elif a is not None:
                self._note("only in a", a, None)
            elif b is not None:
                self._note("only in b", None, b)

    def _pair(self, a: StoredEvent, b: StoredEvent) -> None:
        if self._agree(a, b):
            self._note_agreement(a, b)
        elif (a.kind, a.actor, a.type) == (b.kind, b.actor, b.type):
            self._note("changed", a, b)
        else:
            self._note("only in a", a, None)
            self._note("only in b", None, b)

    def _note(self, kind: DifferenceKind, a: StoredEvent | None, b: StoredEvent | None) -> None:
        found = Difference(kind, a, b)
        self._counts[found.shown.actor, found.shown.type, kind] += 1
        if len(self._differences) < LISTED_MAX:
            self._differences.append(found)


def _meeting(a: list[StoredEvent], b: list[StoredEvent], size: int) -> tuple[int, int] | None:
    """How many events to pass over in each, few at best, until several in a row are alike; None when none are in these
    windows of ``size``. The first two are not alike."""
    keys_a, keys_b = [_shape(event) for event in a], [_shape(event) for event in b]
    first: dict[tuple[object, ...], int] = {}
    for j in range(len(b) - AGREEING, -1, -1):
        first[tuple(keys_b[j : j + AGREEING])] = j
    found = [
        (i, first[keys]) for i in range(len(a) - AGREEING + 1) if (keys := tuple(keys_a[i : i + AGREEING])) in first
    ]
    if len(a) < size and len(b) < size:  # both logs end in here
        found += [
            (len(a) - count, len(b) - count)
            for count in range(1, min(AGREEING, len(a) + 1, len(b) + 1))
            if keys_a[-count:] == keys_b[-count:]
        ]
    return min(found, key=lambda pair: (sum(pair), pair), default=None)


def _shape(event: StoredEvent) -> tuple[object, ...]:
    data = b"" if event.type == "log.created" else _masked(bytes(event.data))
    return event.kind, event.actor, event.type, data


def _masked(data: bytes) -> bytes:
    return _POSITION.sub(rb"\g<1>0", data)


def _pretty(event: StoredEvent | None) -> list[str]:
    if event is None:
        return []
    parts = {
        "kind": event.kind, "actor": event.actor, "type": event.type, "id": event.id, "time": event.time,
        "correlation": event.correlation, "causation": event.causation, "data": event.data,
    }
    return msgspec.json.format(msgspec.json.encode(parts), indent=2).decode().splitlines()
