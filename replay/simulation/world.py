"""The world of one run: its clock, its chance, what happens next, and the hash of all that happened."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, TypeVar

from pmagent.events.errors import ForeignChange
from pmagent.events.event import format_time, parse_time
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.disk import SimDisk
from pmagent.replay.simulation.faults import FOREIGN_CHANCES, Faults

T = TypeVar("T")

BEGINNING: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Violation(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, message: str) -> None:
    """Raise Violation with ``message`` unless it ``holds``."""
    if not holds:
        raise Violation(message)


def there(found: T | None, message: str) -> T:
    """``found``; raises Violation with ``message`` where there is none."""
    if found is None:
        raise Violation(message)
    return found


class Others:
    """Somebody who changes the log's files in ``folder`` while a process has them open, and brings them back when that
    process has ended."""

    def __init__(self, disk: SimDisk, folder: str, faults: Faults) -> None:
        self._disk = disk
        self._folder = folder
        self.faults = faults
        self._undo: Callable[[], None] | None = None
        self._begun = False
        """Whether this process has a segment."""

    def under(self, work: Callable[[], T]) -> T:
        """Change something, perhaps, once there is a segment, right before ``work``, which has to notice it."""
        if self.faults.active and not self._begun:
            self._begun = self._disk.has_log(self._folder)
        if self.faults.active and self._begun:
            struck = next(filter(self.faults.strike, FOREIGN_CHANCES), "")
            self._undo = self._disk.change(struck, self._folder) if struck else None
        done = work()
        require(self._undo is None, "the log was changed from outside, and its writer goes on")
        return done

    def bring_back(self, error: BaseException) -> None:
        """The process has ended with ``error``: the files are again as it left them."""
        self._begun = False
        if self._undo is not None:
            self._undo()
            self._undo = None
        if isinstance(error, ForeignChange):
            self.faults.note("log: foreign change noticed")


class World:
    """One thread, one clock, one seed of all chance. Everything that happens is an action on its calendar."""

    def __init__(self, chance: Chance, only: frozenset[str] | None = None) -> None:
        self.chance = chance
        self.faults = Faults(chance, "world", only)
        self.disk = SimDisk(chance, self.faults)
        self.others: Others
        """The others that change the log's files."""
        self.micros = 0
        """True time since the beginning, in microseconds."""
        self.steps = 0
        self._skew = 0
        self._shown: tuple[int | None, str] = None, ""
        """The latest time that the clock showed, and when it did."""
        self._second: tuple[int | None, str] = None, ""
        """The second of that time since the beginning, and how it is written."""
        self._calendar: list[tuple[int, int, str, Callable[[], None]]] = []
        self._entries = 0
        self._notes: list[str] = []

    @property
    def seconds(self) -> float:
        """True time since the beginning."""
        return self.micros / 1_000_000

    def now(self) -> str:
        """The time of the machine's clock, as log time: it may have been set wrong."""
        micros = self.micros + self._skew
        if micros != self._shown[0]:
            second, rest = divmod(micros, 1_000_000)
            if second != self._second[0]:
                self._second = second, format_time(BEGINNING + timedelta(seconds=second))[: -len("000000Z")]
            self._shown = micros, f"{self._second[1]}{rest:06d}Z"
        return self._shown[1]

    def set_clock(self, seconds: float) -> None:
        """Turn the machine's clock by so much; it never goes before the beginning by more than an hour."""
        self._skew = max(-3_600_000_000, self._skew + int(seconds * 1_000_000))

    def until(self, time: str) -> float:
        """Seconds until the machine's clock shows ``time`` (0 when it has)."""
        return max(0.0, (parse_time(time) - BEGINNING).total_seconds() - (self.micros + self._skew) / 1_000_000)

    def later(self, seconds: float, label: str, action: Callable[[], None]) -> None:
        """Put ``action`` on the calendar; things of one moment happen in the order in which they were put there."""
        self._entries += 1
        heapq.heappush(self._calendar, (self.micros + int(seconds * 1_000_000), self._entries, label, action))

    def ended(self, error: BaseException) -> None:
        """The process has ended with ``error``."""
        self.note(type(error).__name__)
        self.others.bring_back(error)

    def step(self) -> bool:
        """Do what is next; False when nothing is."""
        if not self._calendar:
            return False
        at, _, label, action = heapq.heappop(self._calendar)
        self.micros = max(self.micros, at)
        self.steps += 1
        self._notes.append(f"{self.micros} {label}")
        action()
        return True

    @property
    def next_at(self) -> float:
        """When the next action is due (seconds since the beginning; endless when there is none)."""
        return self._calendar[0][0] / 1_000_000 if self._calendar else float("inf")

    def note(self, text: str) -> None:
        """Put something that happened into the history."""
        self._notes.append(text)

    def history(self) -> str:
        """SHA-256 of everything that was noted, and of how the chance stands."""
        return sha256(self.noted() + self.chance.drawn().encode()).hexdigest()

    def noted(self) -> bytes:
        """SHA-256 of everything that was noted."""
        return sha256("\n".join([*self._notes, ""]).encode()).digest()
