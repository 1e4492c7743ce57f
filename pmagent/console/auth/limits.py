"""How often somebody may do something: buckets of tokens, and places to sit. Both take a bounded amount of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

KEYS_MAX: Final = 4096


class Bucket:
    """Lets ``burst`` through at once for each key, and ``rate`` a second in the long run: in any stretch of t seconds
    at most ``burst + rate * t``. ``clock`` gives seconds, and never goes back.

    A key whose bucket has filled up again is forgotten. Where there are more keys than ``keys``, none of them full, a
    new one is refused: a limit that can be outrun by more names is none.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float], keys: int = KEYS_MAX) -> None:
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._keys = keys
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str = "") -> float:
        """0.0 when one more is let through; else the seconds after which the next one is."""
        now = self._clock()
        left = self._now(key, now)
        if left < 1.0:
            return (1.0 - left) / self.rate
        if key not in self._left and len(self._left) >= self._keys:
            self._forget(now)
            if len(self._left) >= self._keys:
                return 1.0 / self.rate
        self._left[key] = (left - 1.0, now)
        return 0.0

    def _now(self, key: str, now: float) -> float:
        left, since = self._left.get(key, (float(self.burst), now))
        return min(float(self.burst), left + (now - since) * self.rate)

    def _forget(self, now: float) -> None:
        for key in [key for key in self._left if self._now(key, now) >= self.burst]:
            del self._left[key]

    def __len__(self) -> int:
        return len(self._left)


class Seats:
    """So many may sit at once: ``each`` of a key, ``overall`` of all."""

    def __init__(self, each: int, overall: int) -> None:
        self.each = each
        self.overall = overall
        self._taken: dict[str, int] = {}

    @contextmanager
    def seat(self, key: str) -> Iterator[bool]:
        """Whether there is a seat for ``key``; it is kept until the block is left."""
        mine = self._taken.get(key, 0)
        free = mine < self.each and sum(self._taken.values()) < self.overall
        if not free:
            yield False
            return
        self._taken[key] = mine + 1
        try:
            yield True
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]

    def __len__(self) -> int:
        return sum(self._taken.values())
