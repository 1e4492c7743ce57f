"""A daemon that stands by for a log that another one holds: it folds what comes, and takes it over (docs/design.md
§4.6)."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import structlog

from pmagent.events.errors import GaveUp, NotFound
from pmagent.events.event import Tail
from pmagent.events.reader import event_at
from pmagent.events.storage import LogReader, Storage
from pmagent.events.store import Lease, LogStore
from pmagent.service.admission import admitted
from pmagent.service.folding import Folded
from pmagent.workspace.layout import Layout, reachable
from pmagent.workspace.trust import require_accepted
from pmagent.workspace.user_registry import snapshot_digest

_log = structlog.get_logger("pmagent")


class Follower:
    """Folds the log of ``layout`` while somebody else writes it; for one thread at a time, but for ``give_up``.
    ``ready`` is called when it begins to."""

    def __init__(self, layout: Layout, store: LogStore, ready: Callable[[], None]) -> None:
        self._layout = layout
        self._store = store
        self._ready: Callable[[], None] | None = ready
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._reader: LogReader | None = None
        self._folded: Folded | None = None
        self._tail = Tail()
        self._stop = threading.Event()

    def give_up(self) -> None:
        """Wait no longer. For any thread."""
        self._stop.set()

    def follow(self) -> int | None:
        """See Standby. Raises CorruptLog, HistoryError, EventsLost."""
        if self._stop.is_set():
            return None
        if (ready := self._ready) is not None:  # the lock of this workspace is held by now
            self._ready = None
            self._listen()
            ready()
        if self._reader is None:
            with suppress(NotFound):  # it has not begun yet
                self._reader = self._store.reader()
        if self._reader is not None and (tail := self._reader.tail()).position > self._tail.position:
            if self._folded is None:
                digest = snapshot_digest(self._layout)
                self._folded = Folded(self._layout, digest, self._reader.log_id(), self._reader, self._store.blobs())
            self._folded.fold(self._reader, tail.position)
            self._tail = tail
        return self._tail.position

    def folded(self, storage: Storage) -> Folded | None:
        """The folded state, if the log that was taken over goes on from there."""
        position = self._tail.position
        if self._folded is None or storage.tail().position < position:
            return None
        return self._folded if event_at(storage, position).sum == self._tail.sum else None

    def _listen(self) -> None:
        """By the daemon's socket ``pmagent down`` finds the process; it takes no requests there."""
        self._layout.run.chmod(0o700)
        self._layout.socket.unlink(missing_ok=True)
        with reachable(self._layout.socket) as address:
            self._socket.bind(address)
        self._socket.listen()

    def close(self) -> None:
        """Let go of the reader and the socket."""
        self._socket.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class Taken(NamedTuple):
    """A log that a standby has taken over."""

    store: LogStore
    lease: Lease
    follower: Follower


async def stand_by(
    workspace: Path, signals: AsyncIterator[signal.Signals], stack: ExitStack, ready: Callable[[], None]
) -> Taken | None:
    """Wait for the log of ``workspace``, and take it over; its lease ends with ``stack``. ``ready`` is called when it
    follows. None: a signal told it to stop. Raises NoStandby, LogLocked (another process of this workspace has it),
    LogNotTrusted, LogMoved; CorruptLog, EventsLost, DatabaseRefused."""
    require_accepted(workspace)
    layout = Layout(workspace)
    store = layout.store
    layout.prepare()
    admitted(layout, named=True)
    follower = Follower(layout, store, ready)

    async def listen() -> None:
        async for number in signals:
            if number != signal.SIGHUP:
                follower.give_up()
                return

    with closing(follower):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            try:
                holding = store.lease("daemon", standby=follower)
                lease = await anyio.to_thread.run_sync(stack.enter_context, holding)
            except GaveUp:
                return None
            finally:
                tasks.cancel_scope.cancel()
    _log.info("took the log over", log=store.place)
    return Taken(store, lease, follower)
