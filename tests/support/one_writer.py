"""A log as one writer uses it, without actors: open, append, close. The product's runtime builds on the same parts.

    async with open_log(folder) as log:
        event = await log.append(draft)        # returns when the event is durable

Appending the same fact twice gives the event that stands in the log already.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

from pmagent.events.commit import Durable
from pmagent.events.errors import PmagentError
from pmagent.events.event import Draft, Event, Tail
from pmagent.events.evidence import log_in
from pmagent.events.log import LogClock, now, opening_events
from pmagent.events.reader import event_at, runs
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.events.sequencer import RECENT_FACTS_MAX, Sequencer
from pmagent.events.storage import Storage
from pmagent.events.writer import Writer


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
