"""The writer thread, seen from an event loop: submit events, hear when they are durable (docs/design.md §2.2).

Batches and the loop take turns: a batch is written, the loop hands out its outcome and lets everybody who waited for
it go on, and what they append is the next batch. So all of 256 writers share one sync; with the interpreter lock,
letting the thread run ahead would only split batches and make both sides wait for each other.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final

from pmagent.events.commit import Committer, Durable
from pmagent.events.errors import OutcomeUnknown, PmagentError
from pmagent.events.event import Event
from pmagent.events.storage import Storage

SETTLE_SECONDS: Final = 0.05
"""After so much quiet, HEAD is made durable."""

LOOK_SECONDS: Final = 1.0
"""So often at least, the storage looks whether all is still there."""


class Writer:
    """Owns the writer thread of ``storage``. Use it from one event loop only.

    ``on_durable`` is called on the loop for each batch, in order; ``on_failure`` once, when a write failed: nothing
    more is written then, and what was not reported durable has an unknown outcome.
    """

    def __init__(
        self,
        storage: Storage,
        on_durable: Callable[[Durable], None],
        on_failure: Callable[[PmagentError], None],
    ) -> None:
        self._committer = Committer(storage)
        self._on_durable = on_durable
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._wake: SimpleQueue[None] = SimpleQueue()  # a third of what a threading.Event costs
        self._stopping = False
        self._failed = False
        self._busy = False  # a batch is with the thread, or the loop is about to give it one
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def submit(self, events: Sequence[Event], token: Any = None) -> None:
        """Put events, in the order of their positions, into the next batch. It starts when this turn of the loop is
        over. Raises OutcomeUnknown after a failure."""
        if self._failed:
            raise OutcomeUnknown("an earlier write failed")
        self._committer.submit(events, token)
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._wake.put, None)

    @property
    def quiet(self) -> bool:
        """Whether everything that was submitted is durable and handed out."""
        return not self._busy

    async def stop(self) -> None:
        """Write what waits, make HEAD durable, and end the thread."""
        self._stopping = True
        self._wake.put(None)
        await self._ended.wait()
        self._thread.join()

    def _handle(self, durable: Durable) -> None:
        try:
            self._on_durable(durable)
        except BaseException as error:  # nobody would be woken any more: end, rather than hang
            self._fail(OutcomeUnknown(f"handing out what is durable failed with {type(error).__name__}"))
            raise
        self._loop.call_soon(self._next)  # behind everybody whom the outcome lets go on

    def _next(self) -> None:
        if self._committer.idle:
            self._busy = False
        else:
            self._wake.put(None)

    def _fail(self, error: PmagentError) -> None:
        self._failed = True
        self._on_failure(error if isinstance(error, OutcomeUnknown) else OutcomeUnknown(error.message))

    def _run(self) -> None:
        post = self._loop.call_soon_threadsafe
        try:
            self._write_batches(post)
        except PmagentError as error:
            post(self._fail, error)
        except Exception as error:  # a bug here must stop the daemon, not end the thread in silence
            post(self._fail, OutcomeUnknown(f"the writer thread failed with {type(error).__name__}"))
            raise
        finally:
            post(self._ended.set)

    def _write_batches(self, post: Callable[..., object]) -> None:
        unsettled = False
        while True:
            try:
                self._wake.get(timeout=SETTLE_SECONDS if unsettled else LOOK_SECONDS)
                woken = True
            except Empty:
                woken = False
            durable = self._committer.commit() if woken else None
            if durable is not None:
                unsettled = True
                post(self._handle, durable)
            elif self._stopping:
                break
            elif unsettled or not woken:
                self._committer.settle()
                unsettled = False
        while (durable := self._committer.commit()) is not None:
            post(self._handle, durable)
        self._committer.settle()
