"""A log's time, and its own events at opening (docs/design.md §2)."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

import msgspec

from pmagent.events.event import Draft, Event, LogCreated, format_time, parse_time
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Storage

LOG_ACTOR = "log"
"""The actor that writes ``log.created``, ``log.recovered`` and ``log.taken_over``."""


def now() -> str:
    """The real time, as the log writes it."""
    return _written(time.time_ns())


class LogClock:
    """The time of a log that goes on: the real time, or, where that lies behind what the clock or the log has said
    already (the real clock was set back, or stood ahead once), a time that goes on from there as fast as time really
    passes, but for a thousandth, by which the real time catches up. So what expires does so however far the log's time
    stands ahead. For any thread.

    ``stood`` is the last time in the log ("": none).
    """

    def __init__(self, stood: str = "") -> None:
        self._last_reading = (_nanoseconds(stood) if stood else 0, _steady())
        self._written = (-GRAIN_NS, "")  # the real time of a reading, and the reading; in one piece, for any thread
        self._lock = threading.Lock()

    def now(self) -> str:
        """The time, as the log writes it, at most ``GRAIN_NS`` ago."""
        at, text = self._written
        return text if 0 <= time.time_ns() - at < GRAIN_NS else self._go_on(0)

    def _go_on(self, reached: int) -> str:
        """The time, ``reached`` (in ns) at least."""
        with self._lock:
            reading, then = self._last_reading
            steady, real = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()
            goes_on = reading + (steady - then) * 999 // 1000
            time_ns = min(max(real, goes_on, reached), _LAST_NS)  # the real time is hardly ever behind
            self._last_reading = (time_ns, steady)
            self._written = (real, text := _written(time_ns))
        return text

    def timer(self, at: str) -> Callable[[], float]:
        """A timer that runs from now until log time ``at``: it tells how many seconds are left, none when it is due. It
        counts real seconds, whatever becomes of the clock meanwhile, and when it is due it is ``at``, or later. Raises
        ValueError when ``at`` is no log time."""
        at_ns = _nanoseconds(at)
        due = _steady() + at_ns - _nanoseconds(self.now())

        def left() -> float:
            seconds = (due - _steady()) / 1e9
            if seconds > 0 and self.now() < at:
                return seconds
            self._go_on(at_ns)
            return 0.0

        return left


GRAIN_NS: Final = 100_000
"""A reading of the clock serves for so long: writing one takes a tenth of an append."""

AHEAD_SECONDS: Final = 1.0
"""By so much a log's time may stand ahead of the clock without a word: clocks are set by less all the time."""


def ahead_seconds(stood: str) -> float:
    """How far the last time of a log stands ahead of this machine's clock, in seconds; 0 when it hardly does."""
    ahead = (_nanoseconds(stood) - time.time_ns()) / 1e9 if stood else 0.0
    return round(ahead, 3) if ahead > AHEAD_SECONDS else 0.0


def _steady() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _nanoseconds(text: str) -> int:
    return (parse_time(text) - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000


_LAST_NS: Final = _nanoseconds("9999-12-31T23:59:59.999999Z")
"""The last time that a log can write."""


class _Second:
    """The second that was written last: writing one costs ten times as much as the microseconds behind it."""

    last: ClassVar[tuple[int, str]] = (-1, "")  # in one piece, for any thread


def _written(time_ns: int) -> str:
    second, micros = divmod(time_ns // 1000, 1_000_000)
    number, text = _Second.last
    if number != second:
        text = format_time(datetime.fromtimestamp(second, UTC))[:20]
        _Second.last = (second, text)
    return f"{text}{micros:06d}Z"


def opening_events(
    storage: Storage, log_id: str, recovered: msgspec.Struct | None, sequencer: Sequencer, at: str, nonce: str = ""
) -> list[Event]:
    """The log's own events at opening: ``log.created`` for a new one, ``log.recovered`` after a cut, ``log.taken_over``
    where another one held it.

    ``nonce`` keeps the ids of two recoveries apart; by default it is random.
    """
    drafts: list[tuple[str, msgspec.Struct, str]] = []
    if storage.tail().position == 0:
        drafts.append(("log.created", LogCreated(log_id=log_id), f"log.created:{log_id}"))
    if recovered is not None:
        nonce = nonce or secrets.token_hex(8)
        drafts.append(("log.recovered", recovered, f"log.recovered:{storage.tail().sum[:16]}:{nonce}"))
    if (taken := storage.taken_over) is not None:
        drafts.append(("log.taken_over", taken, f"log.taken_over:{storage.tail().sum[:16]}:{taken.epoch}"))
    return [
        sequencer.admit(Draft(type, data, msgspec.json.encode(data), id, LOG_ACTOR), at) for type, data, id in drafts
    ]
