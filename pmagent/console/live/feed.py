"""The one follower of the log for all browsers: it looks for news, which are read, checked and decoded once.

Nobody is handed anything: each connection takes the runs behind its own position at its own pace, from the newest ones,
which are kept, or from the log. So a slow connection slows nobody, and holds one run at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
import anyio.to_thread

from pmagent.console.live.packing import Piece
from pmagent.console.live.pulse import Liveness, Pulse
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import StoredEvent, Tail
from pmagent.events.reader import Reader
from pmagent.events.storage import LogReader

LOOK_SECONDS: Final = 0.1
"""How often the end is looked at while nothing happens: one small pread."""
PACE_SECONDS: Final = 0.25
"""News are told no more often: what happens meanwhile is told together."""
HEARTBEAT_SECONDS: Final = 1.0
"""While nothing happens, that is told so often: a page that hears nothing for longer says that nobody answers."""
FAR_LOOK_SECONDS: Final = 1.0
"""So long a database may take to tell the end of the log; then pages are told what is known."""
GROUP_MAX: Final = 16
"""So many are woken at once."""
RUN_BYTES: Final = 64 * 1024
"""So much of the log is one run: what a slow connection holds while it waits."""
KEPT_BYTES: Final = 8 * 1024 * 1024
"""So much memory, estimated, the kept runs take."""
KEPT_MAX: Final = 128
"""So many runs are kept; when little happens, a run is an event or two."""
MADE_MAX: Final = 16
"""For so many different filters a run remembers what was made of it."""
_EVENT_BYTES: Final = 1024
"""The memory of a decoded event beside the bytes of its line, roughly."""


def _cost(made: Piece) -> int:
    return len(made.plain) + len(made.packed)


class Silent(PmagentError, exit_code=5):
    """The end of the log has never been known."""


class Run:
    """Consecutive events, at least one, and what was made of them: once for all who want the same."""

    __slots__ = ("_made", "cost", "events", "first", "last")

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.events = events
        self.first, self.last = events[0].position, events[-1].position
        self.cost = sum(_EVENT_BYTES + len(memoryview(event.data)) for event in events)
        self._made: dict[Hashable, Piece] = {}

    def behind(self, position: int) -> Sequence[StoredEvent]:
        """Its events behind ``position``."""
        return self.events[max(0, position + 1 - self.first) :]

    def known(self, key: Hashable) -> Piece | None:
        """A value made of all its events and kept under ``key``."""
        return self._made.get(key)

    def keep(self, key: Hashable, made: Piece) -> None:
        """Keep what was made of all its events for others who want the same; the oldest gives way."""
        if len(self._made) >= MADE_MAX:
            self.cost -= _cost(self._made.pop(next(iter(self._made))))
        self._made[key] = made
        self.cost += _cost(made)


class Group:
    """Some who are woken together. ``reported``: of what they know; ``woken``: when, on the steady clock."""

    def __init__(self) -> None:
        self.size = 0
        self.news = anyio.Event()
        self.reported: tuple[int, bool, Liveness | None] = (-1, True, None)
        self.woken = time.monotonic()

    def wake(self) -> None:
        """Now."""
        self.woken = time.monotonic()
        news, self.news = self.news, anyio.Event()
        news.set()


class Feed:
    """A log as it grows, of which ``opened`` opens a reader, and whether the daemon answers (``pulse``). ``run`` is to
    run as a task; everything else is called on the same loop.

    ``log_id`` says which log it is, ``tail`` is its durable end at the last look, ``trouble`` why there was none to be
    seen, ``ended`` says that the server stops.
    """

    def __init__(
        self, opened: Callable[[], LogReader], pulse: Pulse | None = None, *, run_bytes: int = RUN_BYTES,
        kept_max: int = KEPT_MAX, far: bool = False,
    ) -> None:  # fmt: skip
        self._open = opened
        self._far = far
        self._eye = anyio.CapacityLimiter(1)
        self._pulse = pulse
        self._run_bytes = run_bytes
        self._kept_max = kept_max
        self._head: LogReader | None = None
        self._storage: LogReader | None = None  # the reading thread's own: it remembers where it stands
        self._reader: Reader | None = None
        self._thread = anyio.CapacityLimiter(1)
        self._kept: dict[int, Run] = {}
        self._furthest = 0  # no run that is or was kept goes further
        self._coming: dict[int, anyio.Event] = {}
        self._groups: list[Group] = []
        self._somebody = anyio.Event()
        self.tail = Tail()
        self.log_id = ""
        self.trouble: PmagentError | OSError | None = None
        self.ended = False

    async def run(self) -> None:
        """Look for news as long as somebody listens, until cancelled. Listeners are notified in small groups, one after
        the other: no burst of work keeps a processor from those who write the log."""
        pause = LOOK_SECONDS
        while True:
            if not self._groups:
                self._somebody = anyio.Event()
                await self._somebody.wait()
            news = False
            for group in list(self._groups):
                if self._far:
                    await self.looked()
                news |= self.tell(group)
                await anyio.sleep(pause / max(1, len(self._groups)))
            pause = PACE_SECONDS if news else LOOK_SECONDS

    def look(self) -> None:
        """Look at the durable end now."""
        try:
            self._head = self._head or self._open()
            self.tail = self._head.tail()
            self.log_id = self.log_id or self._head.log_id()
            self.trouble = None
        except (PmagentError, OSError) as error:
            self.trouble = error

    async def looked(self) -> None:
        """``look``; a database is asked in a thread, and others are told meanwhile that it keeps silent."""
        if not self._far:
            self.look()
            return
        with anyio.move_on_after(FAR_LOOK_SECONDS) as patience:
            await anyio.to_thread.run_sync(self.look, limiter=self._eye, abandon_on_cancel=True)
        if patience.cancelled_caught and not self.log_id:
            self.trouble = Silent("the database of the log does not answer", "load the page again")

    @property
    def daemon(self) -> Liveness | None:
        """Whether the daemon answers; None where nobody asks it."""
        return self._pulse.state if self._pulse is not None else None

    def tell(self, group: Group) -> bool:
        """Look, and wake the group if there are news, or it has heard nothing for long; whether there were news. The
        end of a log in a database was looked at before."""
        if not self._far:
            self.look()
        if self._pulse is not None:
            self._pulse.want()
        news = (self.tail.position, self.trouble is None, self.daemon)
        if news == group.reported and time.monotonic() - group.woken < HEARTBEAT_SECONDS:
            return False
        found = news != group.reported
        group.reported = news
        group.wake()
        return found

    def end(self) -> None:
        """Nothing more is told: whoever waits goes on, and sees that it has ended."""
        self.ended = True
        for group in self._groups:
            group.wake()

    async def close(self) -> None:
        """Let go of the log's files, when nothing is read any more."""
        async with self._thread:
            for storage in (self._head, self._storage):
                if storage is not None:
                    storage.close()
            self._head = self._storage = self._reader = None

    @contextmanager
    def listening(self) -> Iterator[Group]:
        """A place among those who are woken; while there is one, ``run`` looks for news."""
        group = next((group for group in self._groups if group.size < GROUP_MAX), None)
        if group is None:
            group = Group()
            self._groups.append(group)
            self._somebody.set()
        group.size += 1
        try:
            yield group
        finally:
            group.size -= 1
            if not group.size:
                self._groups.remove(group)

    async def news(self, position: int, group: Group) -> None:
        """Return when the log is not at ``position``, cannot be read, the feed has ended, or nothing has happened for
        so long that just that is worth telling."""
        if self.tail.position == position and self.trouble is None and not self.ended:
            await group.news.wait()

    def kept(self, position: int) -> Run | None:
        """A kept run that holds the event behind ``position``. Nearly everybody wants one that begins there."""
        wanted = position + 1
        found = self._kept.get(wanted)
        if found is not None or not self._kept or wanted > self._furthest:
            return found
        for run in self._kept.values():
            if run.first <= wanted <= run.last:
                return run
        return None

    async def after(self, position: int) -> Run:
        """A run that holds the event behind ``position``, which must not be the last.

        Raises CorruptLog, NotFound, OSError.
        """
        while (run := self.kept(position)) is None:
            coming = self._coming.get(position + 1)
            if coming is None:
                await self._fetch(position + 1)
            else:
                await coming.wait()
        return run

    async def _fetch(self, wanted: int) -> None:
        """Read the run that begins at ``wanted``; others who want it wait for it."""
        self._coming[wanted] = anyio.Event()
        try:
            events = await anyio.to_thread.run_sync(self._read, wanted, limiter=self._thread)
            if events[-1].position > self.tail.position:
                await self.looked()  # it has read what came since
            self._keep(Run(events))
        finally:
            self._coming.pop(wanted).set()

    def _read(self, wanted: int) -> Sequence[StoredEvent]:
        """In the thread. A read that starts where the last one stopped needs no search."""
        reader, self._reader = self._reader, None
        if self._storage is None:
            self._storage = self._open()
        if reader is None or reader.tail.position + 1 != wanted:
            reader = Reader(self._storage, wanted, self._run_bytes)
        events = reader.next_run()
        if not events:
            raise NotFound(f"the log has no position {wanted} any more", "pmagent log verify")
        self._reader = reader
        return events

    def _keep(self, run: Run) -> None:
        self._kept.pop(run.first, None)
        self._kept[run.first] = run
        self._furthest = max(self._furthest, run.last)
        cost = sum(kept.cost for kept in self._kept.values())
        while len(self._kept) > 1 and (cost > KEPT_BYTES or len(self._kept) > self._kept_max):
            cost -= self._kept.pop(next(iter(self._kept))).cost
