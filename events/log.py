"""The log as one writer uses it: open, append, close (docs/design.md §2). The actors' runtime builds on the same parts.

    async with open_log(folder) as log:
        event = await log.append(draft)        # returns when the event is durable

Appending the same fact twice gives the event that stands in the log already.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from pmagent.events.commit import Durable
from pmagent.events.errors import PmagentError
from pmagent.events.event import Draft, Event, LogCreated, Tail, format_time, parse_time
from pmagent.events.evidence import log_in
from pmagent.events.reader import event_at, runs
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.events.sequencer import RECENT_FACTS_MAX, Sequencer
from pmagent.events.storage import Storage
from pmagent.events.writer import Writer

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


def recent_facts(storage: Storage, before: Tail) -> list[tuple[str, int]]:
    """Ids and positions of the latest facts, oldest first, read back from the log's end."""
    start = max(1, before.position - RECENT_FACTS_MAX + 1)
    return [(event.id, event.position) for run in runs(storage, start) for event in run if event.kind == "fact"]


class Log:
    """One writer's log on the running event loop. Use ``open_log``."""

    def __init__(self, storage: Storage, sequencer: Sequencer) -> None:
        self.storage = storage
        self._clock = LogClock(storage.tail().time)
        self._sequencer = sequencer
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(storage, self._durable, self._failed)
        self._is_local = storage.is_local
        self._end = storage.tail().position  # durable, and handed out
        self._again: dict[int, list[asyncio.Future[Event]]] = {}  # by position: who has sent it again meanwhile
        self._failure: PmagentError | None = None

    async def append(self, draft: Draft) -> Event:
        """Append a fact and return it when it is durable. A fact that stands in the log already is returned as it
        stands there, once it is durable. Raises OutcomeUnknown when the write failed, BadEvent for a bad draft."""
        if self._failure is not None:
            raise self._failure
        known = self._sequencer.seen(draft.id) if draft.kind == "fact" else None
        if known is not None:
            if known <= self._end:
                return self._stored(known, draft)
            future: asyncio.Future[Event] = self._loop.create_future()
            self._again.setdefault(known, []).append(future)  # one of its own: who came first may be cancelled
            return await future
        event = self._sequencer.admit(draft, self._clock.now())
        if self._is_local and self._writer.may_write((event,), task := asyncio.current_task()):
            if not self._writer.write_now((event,), None, task):
                self._check()
            if self._writer.must_yield:
                await asyncio.sleep(0)
            return event
        future = self._loop.create_future()
        self._writer.submit((event,), future)
        return await future

    def append_events(self, events: Sequence[Event]) -> None:
        """Put events that have their places already into the next batch (the log's own, at opening)."""
        self._writer.submit(events)

    async def aclose(self) -> None:
        """Write what waits, make HEAD durable, close. Raises what a failed write raised."""
        await self._writer.stop()
        self.storage.close()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _stored(self, position: int, draft: Draft) -> Event:
        stored = event_at(self.storage, position)
        return Event(
            stored.position, stored.time, stored.id, stored.kind, stored.actor, stored.type,
            stored.correlation, stored.causation, draft.data, bytes(stored.data),
        )

    def _durable(self, durable: Durable) -> None:
        again = self._again
        for submission in durable.submissions:
            future = submission.token
            if future is not None and not future.done():
                future.set_result(submission.events[0])
            for event in submission.events if again else ():
                for future in again.pop(event.position, ()):
                    if not future.done():
                        future.set_result(event)
        self._end = durable.tail.position

    def _failed(self, error: PmagentError) -> None:
        self._failure = error
        for future in (*self._writer.unwritten(), *chain.from_iterable(self._again.values())):
            if future is not None and not future.done():
                future.set_exception(error)
        self._again.clear()


@asynccontextmanager
async def open_log(folder: Path, segment_bytes: int = SEGMENT_BYTES) -> AsyncIterator[Log]:
    """The log in ``folder`` (made if there is none), locked against a second writer until the block ends.

    Raises LogLocked, CorruptLog, OSError.
    """
    with log_in(folder, segment_bytes).lease(f"thread {threading.get_ident()}") as lease:
        storage = lease.open()
        try:
            sequencer = Sequencer(storage.tail(), recent_facts(storage, storage.tail()))
            first = opening_events(storage, storage.log_id(), storage.recovered, sequencer, now())
            log = Log(storage, sequencer)
        except BaseException:
            storage.close()
            raise
        if first:
            log.append_events(first)
        try:
            yield log
        finally:
            await log.aclose()
