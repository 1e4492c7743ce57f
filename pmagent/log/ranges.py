"""Which part of the log is meant, and the first or the last events of it that are wanted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from pmagent.events.errors import CorruptLog, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import Needles, matching_runs
from pmagent.events.storage import StorageReader
from pmagent.log.source import position_at_time
from pmagent.when import BadTime, moment

POSITION_MAX: Final = 2**53 - 1
"""Positions are numbers in other programs, too."""

_WINDOW: Final = 512
_WINDOW_MAX: Final = 65_536
"""The last events that match are looked for backwards, first in so many, then in twice as many, and so on up to so
many at once."""

Pick = Callable[[Sequence[StoredEvent]], Sequence[StoredEvent]]
"""Those of some events that are wanted. May raise TooSlow."""


class AtPosition(Protocol):
    """Picks the wanted events of a run, each as it is or converted."""

    @property
    def position(self) -> int:
        """The event's."""


K = TypeVar("K", bound=AtPosition)


class TooSlow(PmagentError, exit_code=2):
    """An expression takes too long on the text it is held against."""


class Range(msgspec.Struct, frozen=True):
    """From which position, and up to which position (included; None: no end) or time (exclusive; "": no end)."""

    start: int
    stop: int | None
    until: str


class Found(msgspec.Struct, Generic[K], frozen=True):
    """Events that were looked for (or what was kept of them), in log order, and from which position to which was looked
    (``first`` > ``last``: nowhere). ``cut``: there was no more time, and more may be found beyond; ``trouble`` is what
    stood in the way there: the log is corrupt, or the expression takes too long."""

    events: list[K]
    first: int
    last: int
    cut: bool = False
    trouble: PmagentError | None = None


def position_in(text: str) -> int | None:
    """The N of ``pos:N``; None when it is another kind of time. Raises BadTime."""
    if not text.startswith("pos:"):
        return None
    digits = text[4:]
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:17]) <= POSITION_MAX:
        raise BadTime(f"{text[:40]!r} names no position", "e.g. pos:1200")
    return int(digits)


def range_of(storage: StorageReader, since: str | None, until: str | None, after: int, now: datetime) -> Range:
    """The positions that times or positions (None: no bound) denote in this log. Raises BadTime, CorruptLog."""
    start = after + 1
    if since is not None:
        start = max(start, position_in(since) or position_at_time(storage, moment(since, now)))
    if until is None:
        return Range(start, None, "")
    position = position_in(until)
    return Range(start, position, "" if position else moment(until, now))


def end_of(storage: StorageReader, span: Range) -> int:
    """The last position of the range that the log has. Raises CorruptLog."""
    end = storage.tail().position
    if span.stop is not None:
        end = min(end, span.stop)
    if span.until:
        end = min(end, position_at_time(storage, span.until) - 1)
    return end


def start_of_last(storage: StorageReader, span: Range, pick: Pick, count: int | None, needles: Needles = ()) -> int:
    """The position from which the last ``count`` events of the range that are wanted begin. Memory stays flat.

    Raises CorruptLog."""
    if count is None:
        return span.start
    end = end_of(storage, span)
    if count == 0:
        return max(span.start, end + 1)
    high, size, found = end, _WINDOW, 0
    while high >= span.start:
        low = max(span.start, high - size + 1)
        positions = [event.position for run, _ in matching_runs(storage, low, high, needles) for event in pick(run)]
        if found + len(positions) >= count:
            return positions[len(positions) - (count - found)]
        found += len(positions)
        high, size = low - 1, min(2 * size, _WINDOW_MAX)
    return span.start


def last_of(
    storage: StorageReader, span: Range, pick: Callable[[Sequence[StoredEvent]], Sequence[K]], count: int,
    going: Callable[[], bool], needles: Needles = (),
) -> Found[K]:  # fmt: skip
    """The last ``count`` events (at least one) of the range that are wanted, as long as ``going`` says so.
    ``needles``: what is known to stand in the lines of all of them. An event keeps the run in memory that it was read
    with; of many, ``pick`` better gives what has been made of them.

    Raises CorruptLog where it is not even known how far the log goes."""
    end = end_of(storage, span)
    high, size = end, _WINDOW
    found: deque[K] = deque()
    while high >= span.start and len(found) < count:
        low = max(span.start, high - size + 1)
        wanted: deque[K] = deque(maxlen=count - len(found))
        try:
            for run, last in matching_runs(storage, low, high, needles):
                wanted.extend(pick(run))
                if last < high < end and not going():  # the first window is always finished
                    return Found([*found], high + 1, end, cut=True)
        except (CorruptLog, TooSlow) as error:
            return Found([*found], high + 1, end, trouble=error)
        found.extendleft(reversed(wanted))
        high, size = low - 1, min(2 * size, _WINDOW_MAX)
        if high >= span.start and len(found) < count and not going():
            return Found([*found], high + 1, end, cut=True)
    return Found([*found], found[0].position if len(found) == count else high + 1, end)


def first_of(
    storage: StorageReader, span: Range, pick: Callable[[Sequence[StoredEvent]], Sequence[K]], count: int,
    going: Callable[[], bool], needles: Needles = (),
) -> Found[K]:  # fmt: skip
    """The first ``count`` events (at least one) of the range that are wanted, as long as ``going`` says so.
    ``needles``: what is known to stand in the lines of all of them. An event keeps the run in memory that it was read
    with; of many, ``pick`` better gives what has been made of them.

    Raises CorruptLog where it is not even known how far the log goes."""
    end = end_of(storage, span)
    found: list[K] = []
    last = span.start - 1
    try:
        for run, through in matching_runs(storage, span.start, end, needles):
            found.extend(pick(run))
            if len(found) >= count:
                return Found(found[:count], span.start, found[count - 1].position)
            last = through
            if last < end and not going():
                return Found(found, span.start, last, cut=True)
    except (CorruptLog, TooSlow) as error:
        return Found(found, span.start, last, trouble=error)
    return Found(found, span.start, last)
