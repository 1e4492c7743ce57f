"""A daemon that stands by for a log that another one holds: it folds what comes, and takes it over (docs/design.md
§4.6)."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.core.area import load
from pmagent.edges import OPERATIONS
from pmagent.events.errors import GaveUp, NotFound, PmagentError
from pmagent.events.event import Tail
from pmagent.events.reader import event_at
from pmagent.events.storage import LogReader, Storage
from pmagent.events.store import Lease, LogStore
from pmagent.service.admission import admitted
from pmagent.service.answer import Answer
from pmagent.service.folding import Folded, followed
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import require_accepted
from pmagent.workspace.user_registry import snapshot_digest

LOOK_SECONDS: Final = 1.0
"""So long the fold waits for somebody who looks at it."""

_log = structlog.get_logger("pmagent")


class StandsBy(PmagentError, exit_code=5):
    """This process does not hold the log, and nothing was done."""


class Follower:
    """Folds the log of ``layout`` while somebody else writes it, and says how it stands. ``follow`` and ``folded`` are
    for one thread at a time. ``ready`` is called when it begins to."""

    def __init__(self, layout: Layout, store: LogStore, ready: Callable[[], None]) -> None:
        self.layout = layout
        self._store = store
        self._ready: Callable[[], None] | None = ready
        self._reader: LogReader | None = None
        self._log_id = ""
        self._folded: Folded | None = None
        self._tail = Tail()
        self._stop = threading.Event()
        self._turn = threading.Lock()

    def give_up(self) -> None:
        """Wait no longer. For any thread."""
        self._stop.set()

    def follow(self) -> int | None:
        """See Standby. Raises CorruptLog, HistoryError, EventsLost."""
        if self._stop.is_set():
            return None
        if (ready := self._ready) is not None:  # the lock of this workspace is held by now
            self._ready = None
            ready()
        if self._turn.acquire(timeout=LOOK_SECONDS):  # no look keeps a log from being taken over
            try:
                self._fold()
            finally:
                self._turn.release()
        return self._tail.position

    async def perform(self, name: str, arguments: dict[str, Any]) -> Answer:
        """The log's answer to an operation that only looks. Raises StandsBy; CorruptLog, HistoryError, EventsLost, and
        what the operation raises."""
        operation = OPERATIONS.get(name)
        if operation is None or not (operation.looks and operation.alone):
            what = "this machine stands by, and nobody holds the log now; nothing was done"
            raise StandsBy(what, "ask again in some seconds; pmagent status says who holds it")
        alone = load(operation.alone)
        return await anyio.to_thread.run_sync(self._look, alone, name, arguments, abandon_on_cancel=True)

    def _look(self, alone: Callable[..., Answer], name: str, arguments: dict[str, Any]) -> Answer:
        with self._turn:
            if self._stop.is_set():
                raise StandsBy("this process is ending", "pmagent up --standby, and ask again")
            self._fold()
            if self._folded is not None:
                followed.set((self._folded.engine, self._log_id, self._tail))
            answer = alone(self.layout.workspace, name, arguments)
        if "running" not in answer.document:
            return answer
        holder = self._store.holder()
        told = {"running": holder.live, "daemon": "elsewhere", "holder": holder.note if holder.live else ""}
        return msgspec.structs.replace(answer, document={**answer.document, **told})

    def _fold(self) -> None:
        if self._reader is None:
            with suppress(NotFound):  # it has not begun yet
                self._reader = self._store.reader()
        if self._reader is not None and (tail := self._reader.tail()).position > self._tail.position:
            if self._folded is None:
                digest, self._log_id = snapshot_digest(self.layout), self._reader.log_id()
                self._folded = Folded(self.layout, digest, self._log_id, self._reader, self._store.blobs())
            try:
                self._folded.fold(self._reader, tail.position)
            except BaseException:  # nobody knows how much of it is folded
                self._folded, self._tail = None, Tail()
                raise
            self._tail = tail

    def folded(self, storage: Storage) -> Folded | None:
        """The folded state, if the log that was taken over goes on from there."""
        position = self._tail.position
        if self._folded is None or storage.tail().position < position:
            return None
        return self._folded if event_at(storage, position).sum == self._tail.sum else None

    def close(self) -> None:
        """Let go of the reader; nobody looks any more. A look that does not end keeps what is folded."""
        self._stop.set()
        if not self._turn.acquire(timeout=LOOK_SECONDS):
            self._folded = None
            return
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._turn.release()


class Taken(NamedTuple):
    """A log that a standby has taken over."""

    store: LogStore
    lease: Lease
    follower: Follower


async def stand_by(
    workspace: Path, signals: AsyncIterator[signal.Signals], stack: ExitStack,
    follows: Callable[[Follower], Awaitable[None]],
) -> Taken | None:  # fmt: skip
    """Wait for the log of ``workspace``, and take it over; its lease ends with ``stack``. ``follows`` is a task as long
    as it waits. None: a signal told it to stop. Raises NoStandby, LogLocked (another process of this workspace has it),
    LogNotTrusted, LogMoved; CorruptLog, EventsLost, DatabaseRefused."""
    require_accepted(workspace)
    layout = Layout(workspace)
    store = layout.store
    layout.prepare()
    admitted(layout, named=True)
    begun = anyio.Event()
    follower = Follower(layout, store, lambda: anyio.from_thread.run_sync(begun.set))

    async def listen() -> None:
        async for number in signals:
            if number != signal.SIGHUP:
                follower.give_up()
                return

    async def serve() -> None:
        await begun.wait()
        await follows(follower)

    with closing(follower):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(serve)
            try:
                holding = store.lease("daemon", standby=follower)
                lease = await anyio.to_thread.run_sync(stack.enter_context, holding)
            except GaveUp:
                return None
            finally:
                tasks.cancel_scope.cancel()
    _log.info("took the log over", log=store.place)
    return Taken(store, lease, follower)
