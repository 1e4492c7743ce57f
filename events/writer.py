"""The writer thread, seen from an event loop: submit events, hear when they are durable (docs/design.md §2.2).

Batches and the loop take turns: a batch is written, the loop hands out its outcome and lets everybody who waited for
it go on, and what they append is the next batch. So all of 256 writers share one sync; with the interpreter lock,
letting the thread run ahead would only split batches and make both sides wait for each other. A storage on another
machine works meanwhile: there, the thread goes on where ``Committer.overlaps`` says so.

A single appender would wait for two hops between threads, which may take as long as a sync. ``InlineRule`` says when
the loop's thread may write its batch instead.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final

from pmagent.events.commit import Committer, Durable, Submission
from pmagent.events.errors import OutcomeUnknown, PmagentError
from pmagent.events.event import Event
from pmagent.events.storage import Storage

SETTLE_SECONDS: Final = 0.05
"""After so much quiet, HEAD is made durable."""

LOOK_SECONDS: Final = 1.0
"""So often at least, the storage looks whether all is still there."""

CALM_BATCHES: Final = 8
"""After so many batches of one submission each, a single appender is at work."""

SLOW_SECONDS: Final = 0.005
"""A storage that takes longer for a batch must not keep the loop waiting."""

SLOW_REST_SECONDS: Final = 60.0
"""For so long after a slow batch, the loop's thread writes none."""

TURN_SECONDS: Final = 0.0005
"""One appender must not keep the loop for longer by batches that the loop's thread writes."""

INLINE_EVENTS_MAX: Final = 16
"""A submission of more events goes to the writer thread."""

INLINE_BYTES_MAX: Final = 64 * 1024
"""A submission with more bytes of data goes to the writer thread."""

_raw: Final = attrgetter("raw")


class InlineRule:
    """Decides when the loop's thread may write a batch itself (docs/design.md §2.2). Pure: times, in seconds of one
    steady clock, come in.

    It may while a single appender is at work: the last ``CALM_BATCHES`` batches held one submission each, and nobody
    else has appended in this turn of the loop. It must not within ``SLOW_REST_SECONDS`` of a batch that took longer
    than ``SLOW_SECONDS``.
    """

    def __init__(self) -> None:
        self._calm = 0
        self._rests_until = 0.0
        self._appender: object | None = None  # of this turn; None: nobody has written inline in it
        self._since = 0.0

    def permits(self, appender: object, now: float) -> bool:
        """Whether ``appender`` may write a batch at ``now``; ``begins`` when it does."""
        if self._calm < CALM_BATCHES or now < self._rests_until:
            return False
        if self._appender is not None and self._appender is not appender:
            self._calm = 0  # they share a batch instead
            return False
        return True

    def begins(self, appender: object, now: float) -> bool:
        """``appender`` writes a batch; whether this turn of the loop is new to it, so that ``turned`` must be called
        when the loop has let everybody else go on."""
        if self._appender is not None:
            return False
        self._appender, self._since = appender, now
        return True

    def turned(self) -> None:
        """A turn of the loop is over."""
        self._appender = None

    def written(self, submissions: int, seconds: float, now: float) -> bool:
        """A batch of so many submissions is durable ``now``, from whichever thread; the storage took ``seconds``.
        Whether an appender that has written it inline has kept the loop for ``TURN_SECONDS``."""
        self._calm = self._calm + 1 if submissions == 1 else 0
        if seconds > SLOW_SECONDS:
            self.rest(now)
        return now - self._since > TURN_SECONDS

    def rest(self, now: float) -> None:
        """The storage was slow, until ``now``."""
        self._calm, self._rests_until = 0, now + SLOW_REST_SECONDS


class Writer:
    """Owns the writer thread of ``storage``. Use it from one event loop only.

    ``on_durable`` is called on the loop for each batch, in order; ``on_failure`` once, when a write failed: nothing
    more is written then, and what was not reported durable has an unknown outcome.
    """

    def __init__(
        self, storage: Storage, on_durable: Callable[[Durable], None], on_failure: Callable[[PmagentError], None],
    ) -> None:
        self._committer = Committer(storage, monotonic)
        self._is_local = storage.is_local
        self._on_durable = on_durable
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._wake: SimpleQueue[None] = SimpleQueue()  # a third of what a threading.Event costs
        self._stopping = False
        self._failure: OutcomeUnknown | None = None
        self._handing: Sequence[Submission] = ()  # what is being handed out
        self._busy = False  # a batch is with the thread, or the loop is about to give it one
        self._handed = False  # busy, but a batch was handed out, nothing waits, and the loop's turn goes on
        self._rule = InlineRule()
        self._using = threading.Lock()  # held by whichever thread uses the storage
        self._inline = 0  # how many batches the loop's thread has written
        self._unsettled = False
        self.must_yield = False
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def submit(self, events: Sequence[Event], token: Any = None) -> None:
        """Put events, in the order of their positions, into the next batch. It starts when this turn of the loop is
        over. Raises OutcomeUnknown after a failure."""
        if self._failure is not None:
            raise self._failure
        self._committer.submit(events, token)
        self._handed = False
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._wake.put, None)

    def write(self, events: Sequence[Event], token: Any = None, appender: object | None = None) -> bool:
        """Write ``events`` at once where the rule permits it, else ``submit`` them. Whether they are durable and handed
        out now; the ``appender`` (None: the task that runs) must then let the loop go on if ``must_yield`` says so.
        Raises OutcomeUnknown after an earlier failure."""
        appender = appender or asyncio.current_task()
        if self.may_write(events, appender):
            return self.write_now(events, token, appender)
        self.submit(events, token)
        return False

    def may_write(self, events: Sequence[Event], appender: object) -> bool:
        """Whether ``appender`` may write ``events`` at once."""
        return (
            self._is_local and (self._handed or not self._busy)
            and self._failure is None and not self._stopping and not self._using.locked()
            and 0 < len(events) <= INLINE_EVENTS_MAX
            and (len(events[0].raw) if len(events) == 1 else sum(map(len, map(_raw, events)))) <= INLINE_BYTES_MAX
            and self._rule.permits(appender, monotonic())
        )  # fmt: skip

    def write_now(self, events: Sequence[Event], token: Any, appender: object) -> bool:
        """Write ``events``, as ``may_write`` has permitted; whether they are durable and handed out now. If not, the
        write failed, and ``on_failure`` has been called."""
        handed, self._handed, self._busy = self._handed, False, True
        try:
            if self._rule.begins(appender, monotonic()):
                self._loop.call_soon(self._rule.turned)
            with self._using:
                durable = self._committer.commit_only(events, token)
                self._inline += 1
            if not self._unsettled:
                self._unsettled = True
                self._wake.put(None)  # the thread settles when no more come
            self._hand_out(durable)
            if handed:  # the turn's end comes to ``_next``
                self._handed = self._committer.idle
            else:
                self._next()
        except PmagentError as error:
            self._fail(error)
            return False
        except BaseException as error:  # an interrupt leaves an unknown outcome, too
            self._fail(_failed(error))
            raise
        return True

    def unwritten(self) -> Iterator[Any]:
        """After a failure: the tokens of what was not reported durable, or not to everybody."""
        return (submission.token for submission in (*self._handing, *self._committer.unwritten()))

    async def stop(self) -> None:
        """Write what waits, make HEAD durable, and end the thread."""
        self._stopping = True
        self._wake.put(None)
        await self._ended.wait()
        self._thread.join()

    def _handle(self, durable: Durable) -> None:
        self._hand_out(durable)
        self._handed = self._committer.idle
        self._loop.call_soon(self._next)  # behind everybody whom the outcome lets go on

    def _hand_out(self, durable: Durable) -> None:
        self.must_yield = self._rule.written(len(durable.submissions), durable.seconds, monotonic())
        self._handing = durable.submissions
        try:
            self._on_durable(durable)
            self._handing = ()
        except BaseException as error:  # nobody would be woken any more: end, rather than hang
            self._fail(OutcomeUnknown(f"handing out what is durable failed with {type(error).__name__}"))
            raise

    def _next(self) -> None:
        self._handed = False
        if self._committer.idle:
            self._busy = False
        else:
            self._wake.put(None)

    def _fail(self, error: PmagentError) -> None:
        if self._failure is not None:
            return
        self._failure = error if isinstance(error, OutcomeUnknown) else OutcomeUnknown(error.message)
        self._on_failure(self._failure)

    def _run(self) -> None:
        post = self._loop.call_soon_threadsafe
        try:
            self._write_batches(post)
        except PmagentError as error:
            post(self._fail, error)
        except Exception as error:  # a bug here must stop the daemon, not end the thread in silence
            post(self._fail, _failed(error))
            raise
        finally:
            post(self._ended.set)

    def _write_batches(self, post: Callable[..., object]) -> None:
        going_on = True
        while going_on:
            inline = self._inline
            try:
                self._wake.get(timeout=SETTLE_SECONDS if self._unsettled else LOOK_SECONDS)
                woken = True
            except Empty:
                woken = False
            with self._using:
                going_on = self._take_turn(post, woken, quiet=inline == self._inline)

    def _take_turn(self, post: Callable[..., object], woken: bool, *, quiet: bool) -> bool:
        """Write what waits, or settle where it is ``quiet``; whether the thread goes on."""
        if self._failure is not None:
            return False
        durable = self._committer.commit() if woken else None
        if durable is not None:
            self._unsettled = True
            post(self._handle, durable)
            if self._committer.overlaps:
                self._wake.put(None)
        elif self._stopping:
            while (durable := self._committer.commit()) is not None:
                post(self._handle, durable)
            self._committer.settle()
            return False
        elif quiet and not woken:
            began = monotonic()
            self._committer.settle()
            self._unsettled = False
            if (now := monotonic()) - began > SLOW_SECONDS:
                post(self._rule.rest, now)
        return True


def _failed(error: BaseException) -> OutcomeUnknown:
    return OutcomeUnknown(f"writing the log failed with {type(error).__name__}")
