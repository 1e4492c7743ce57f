"""The real I/O of performers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from pmagent.actors.core.actor import StoredBlob
from pmagent.actors.core.intake import ContentStream, Intake
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.log import LogClock
from pmagent.events.reader import event_at
from pmagent.events.storage import BLOB_BYTES_MAX
from pmagent.events.store import LogStore

_NAP_SECONDS = 60.0
"""A sleeper looks at the clock at least so often, so that a clock that was set, or a machine that slept, is noticed."""

_HELD_BYTES = 65_536
"""Small chunks wait until they are so many bytes: a thread for each would cost more than the work in it."""

_RECENT_EVENTS = 1024
_RECENT_BYTES = 4096


class RealStream:
    """The ``BlobStream`` of the daemon: masking and files in threads."""

    def __init__(self, content: ContentStream) -> None:
        self._content = content
        self._held = bytearray()
        self._done = False

    async def __aenter__(self) -> Self:
        """See BlobStream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """See BlobStream."""
        await self.abandon()

    async def write(self, chunk: bytes) -> None:
        """See BlobStream."""
        self._held += chunk
        if len(self._held) >= _HELD_BYTES:
            await self._pass_on()

    async def finish(self) -> StoredBlob:
        """See BlobStream."""
        held, self._held = bytes(self._held), bytearray()
        stored = await anyio.to_thread.run_sync(self._finished, held)
        self._done = True
        return stored

    async def abandon(self) -> None:
        """See BlobStream. Not to be cancelled: it is what a cancellation leads to."""
        self._held.clear()
        if self._done:
            return
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._content.abandon)

    def _finished(self, last: bytes) -> StoredBlob:
        self._content.write(last)
        return self._content.finish()

    async def _pass_on(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        await anyio.to_thread.run_sync(self._content.write, held)


class RealIo:
    """The ``Io`` of the daemon. ``read`` gives the durable event at a position; it may block. ``stood`` is the log's
    last time ("": it has none)."""

    def __init__(self, workspace: Path, intake: Intake, read: Callable[[int], Event], stood: str = "") -> None:
        self._workspace = workspace
        self._intake = intake
        self._read = read
        self._clock = LogClock(stood)
        self._recent: OrderedDict[int, Event] = OrderedDict()

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener: keep small durable events at hand, for a performer mostly asks for one that is not old."""
        for event in events:
            if len(event.raw) <= _RECENT_BYTES:
                self._recent[event.position] = event
        while len(self._recent) > _RECENT_EVENTS:
            self._recent.popitem(last=False)  # of a dict, finding the oldest takes longer the more were removed

    @property
    def workspace(self) -> Path:
        """See Io."""
        return self._workspace

    def now(self) -> str:
        """See Io."""
        return self._clock.now()

    async def sleep_until(self, at: str) -> None:
        """See Io. Raises ValueError when ``at`` is no log time."""
        timer = self._clock.timer(at)
        while (left := timer()) > 0:
            await anyio.sleep(min(left, _NAP_SECONDS))

    def masked(self, text: str) -> str:
        """See Io."""
        return self._intake.masked(text)

    async def store_blob(self, content: bytes) -> str:
        """See Io."""
        return await anyio.to_thread.run_sync(self._intake.content, content)

    def store_stream(self, limit: int = BLOB_BYTES_MAX) -> RealStream:
        """See Io."""
        return RealStream(self._intake.stream(limit))

    async def store_ends(self, head: bytes, tail: bytes, total: int) -> StoredBlob:
        """See Io."""
        return await anyio.to_thread.run_sync(self._intake.ends, head, tail, total)

    async def blob(self, sha256: str) -> bytes:
        """See Io."""
        return await anyio.to_thread.run_sync(self._intake.blob, sha256)

    async def event(self, position: int) -> Event:
        """See Io."""
        known = self._recent.get(position)
        return known if known is not None else await anyio.to_thread.run_sync(self._read, position)


def read_event(store: LogStore, position: int) -> Event:
    """The durable event at ``position``, in a thread of its own: with a reader of its own, because the storage's keeps
    files open and serves the event loop alone. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as log:
        return typed(event_at(log, position), store.blobs())
