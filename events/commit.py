"""Group commit: everything that arrives while a batch is being made durable is the next batch (docs/design.md §2.2).

This is the mechanism, without a thread: ``pmagent.events.writer`` runs it in the one writer thread, the simulation
calls ``commit`` itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from pmagent.events.event import Event, Tail
from pmagent.events.line import seal
from pmagent.events.storage import Storage

BATCH_EVENTS_MAX: Final = 16_384
"""A batch holds so many events at most, but always one submission: what goes in together is never split."""

BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""A batch holds so many bytes of data at most, but always one submission: what is joined, written and synced at once
stays small however large the events are."""

TRIAL_BATCHES: Final = 256
"""So often, in batches, the way that is not the faster one is tried."""

TRIAL_FIRST: Final = 16
TRIAL_LAST: Final = 40
"""The batches of each ``TRIAL_BATCHES`` that are the trial."""

UNTIMED_BATCHES: Final = 4
"""The first batches of a way hold submissions of the other one, and are not timed."""

GAIN: Final = 0.97
"""Halves must take less than this part of the time of whole batches."""

_SMOOTHING: Final = 8

_data: Final = attrgetter("raw")


class Submission(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Events that go into the log together, in order; ``token`` is the submitter's own."""

    events: Sequence[Event]
    token: Any


class Durable(msgspec.Struct, frozen=True):
    """A batch that is durable: what was in it, and the sum of each of its events, in order. ``seconds``: how long the
    storage took."""

    submissions: Sequence[Submission]
    sums: Sequence[str]
    tail: Tail
    seconds: float = 0.0


class Halves:
    """Whether batches of half of the submitters are faster than whole ones: both are timed, and the other way is tried
    again now and then. Pure: times, in seconds of one steady clock, come in."""

    def __init__(self) -> None:
        self.chosen = False
        self._paces: dict[bool, float] = {}  # seconds a submission
        self._batches, self._since, self._ended = 0, 0, 0.0

    def committed(self, submissions: int, seconds: float, now: float) -> None:
        """A batch of so many ended ``now``, which took the storage ``seconds``. A pause before it does not count."""
        passed, self._ended = now - self._ended, now
        self._since += 1
        if submissions > 1 and self._since > UNTIMED_BATCHES and passed < 8 * seconds:
            pace = passed / submissions
            before = self._paces.setdefault(self.chosen, pace)
            self._paces[self.chosen] = before + (pace - before) / _SMOOTHING
        self._batches = (self._batches + (submissions > 1)) % TRIAL_BATCHES
        whole = self._paces.get(False, 0.0)
        better = self._paces.get(True, whole) < GAIN * whole
        chosen = better != (TRIAL_FIRST <= self._batches < TRIAL_LAST)
        if chosen != self.chosen:
            self.chosen, self._since = chosen, 0


class Committer:
    """Collects submissions and writes them, a batch at a time. ``submit`` may be called from another thread than
    ``commit``; each by one thread at a time. ``steady`` is the clock, in seconds, that batches are timed with: a
    simulation has none.

    A storage on another machine and this process work at the same time if not all submitters wait for the same batch:
    if a batch holds half of what waits and of what became durable last, as its submitters come back. But more batches
    cost more, and a server may share our processors. ``Halves`` measures whether it is faster."""

    def __init__(self, storage: Storage, steady: Callable[[], float] = lambda: 0.0) -> None:
        self._storage = storage
        self._parts = not storage.is_local
        self._returning, self._halves = 0, Halves()  # the last batch's submissions; whether half of them go on
        self._steady = steady
        self._tail = storage.tail()  # our own: the storage is asked to agree, and notices when it does not
        self._waiting: deque[Submission] = deque()  # one thread adds, another takes: each step is atomic
        self._taken: Sequence[Submission] = ()  # the batch that is being written, or could not be

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._waiting

    @property
    def overlaps(self) -> bool:
        """Whether the next batch is to be written while the submitters of the last one go on."""
        return self._parts and self._halves.chosen and len(self._waiting) + self._returning > 1

    def submit(self, events: Sequence[Event], token: Any = None) -> None:
        """Put events, in the order of their positions, into the next batch."""
        self._waiting.append(Submission(events, token))

    def commit(self) -> Durable | None:
        """Write what waits as one batch; None when nothing did. Raises OutcomeUnknown, BadEvent, TailMoved."""
        taken, events = self._take()
        if not taken:
            return None
        self._returning = len(taken)
        durable = self._write(taken, events)
        if self._parts:
            self._halves.committed(len(taken), durable.seconds, self._steady())
        return durable

    def commit_only(self, events: Sequence[Event], token: Any = None) -> Durable:
        """``submit`` and ``commit`` as one, for the thread that does both, and only while the committer is ``idle``."""
        return self._write((Submission(events, token),), events)

    def unwritten(self) -> list[Submission]:
        """Submissions that have not become durable, for a writer that has failed."""
        return [*self._taken, *self._waiting]

    def _write(self, taken: Sequence[Submission], events: Sequence[Event]) -> Durable:
        before = self._tail
        self._taken = taken
        if not events:  # what was sent again: it counts as durable only while the log is there
            self._storage.settle()
            self._taken = ()
            return Durable(taken, (), before)
        batch = before.batch + 1
        lines, sums = seal(events, batch, before)
        last = events[-1]
        tail = Tail(last.position, batch, last.time, sums[-1])
        began = self._steady()
        self._storage.append_batch(before, lines, tail)
        self._tail, self._taken = tail, ()
        return Durable(taken, sums, tail, self._steady() - began)

    def settle(self) -> None:
        """Tell the storage that it is idle. Raises OutcomeUnknown."""
        self._storage.settle()

    def _take(self) -> tuple[Sequence[Submission], Sequence[Event]]:
        """The submissions of the next batch, and their events; what does not fit goes on waiting, in its order."""
        waiting, count = self._waiting, len(self._waiting)
        if count > 1 and self.overlaps:
            count = min(count, (count + self._returning + 1) // 2)
        taken = [waiting.popleft() for _ in range(count)]
        if count == 1:  # a single writer's batch: nothing to measure, a submission is never split
            return taken, taken[0].events
        events = [event for submission in taken for event in submission.events]
        if len(events) > BATCH_EVENTS_MAX or sum(map(len, map(_data, events))) > BATCH_BYTES_MAX:
            count = _fitting(taken)
            waiting.extendleft(reversed(taken[count:]))
            events = [event for submission in taken[:count] for event in submission.events]
        return taken[:count], events


def _fitting(waiting: Sequence[Submission]) -> int:
    """How many of the submissions, one at least, a batch holds."""
    events = size = 0
    for index, submission in enumerate(waiting):
        events += len(submission.events)
        size += sum(map(len, map(_data, submission.events)))
        if index and (events > BATCH_EVENTS_MAX or size > BATCH_BYTES_MAX):
            return index
    return len(waiting)
