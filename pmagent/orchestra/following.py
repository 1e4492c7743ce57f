"""Asking for a run, and following it to its end: through the daemon, or in this process (DESIGN §7).

Either way the run's events are read from the log, so that what is shown is what is durable.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import msgspec

from actors.kernel.surfaces import SHARE
from contracts.orchestra_events import RunRequested
from contracts.payload import typed
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import LogLocked, NotFound, PmagentError
from events.event import StoredEvent
from events.lock import is_locked
from events.reader import POLL_SECONDS, Follower
from events.reader import Progress as Pause
from events.redact import MASK
from pmagent.answer import Answer
from pmagent.client import (
    PATIENCE_SECONDS,
    TRY_SECONDS,
    DaemonUnreachable,
    HolderGone,
    call_daemon,
    daemon_listens,
)
from pmagent.host import Host, open_host
from pmagent.layout import FOLDER, Layout
from pmagent.operations import new_request, perform
from pmagent.orchestra.asking import CANCEL, RUN, WRITTEN, open_runs
from pmagent.orchestra.history import History, opened
from pmagent.orchestra.progress import Change, Progress
from pmagent.watching import fail_with_log, watch_surfaces
from pmagent.wire import RemoteError

LOOK_SECONDS: Final = 0.5
"""How often a follower looks whether the daemon is there."""
BACK_SECONDS: Final = 30.0
"""So long a daemon may be gone until its follower gives up."""


class NoDaemon(PmagentError):
    """A run is to go on by itself, and no daemon is there to carry it."""

    exit_code = 5


class DaemonGone(PmagentError):
    """The daemon ended while its run was followed, and did not come back."""

    exit_code = 5


class HeldByRun(PmagentError):
    """A run in another process holds the log, and takes no requests."""

    exit_code = 5


def held_by_run(layout: Layout) -> str:
    """Which process holds the log to carry a run of its own; "" where none does."""
    try:
        holder = layout.lock.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return holder if holder.endswith(f", {RUN}") and is_locked(layout.lock) else ""


class Watcher(Protocol):
    """Who is told. Nothing here may wait."""

    def told(self, progress: Progress, changes: Sequence[Change]) -> None:
        """The run has gone on."""
        ...

    def say(self, text: str) -> None:
        """Something to know besides."""
        ...


class Conductor:
    """One run, from its request to its end. ``progress`` is None until the request is durable."""

    def __init__(self, layout: Layout, asked: RunRequested, watcher: Watcher) -> None:
        self.layout = layout
        self.asked = asked
        self.progress: Progress | None = None
        self.asking = False
        """Whether the request may have been recorded."""
        self._watcher = watcher
        self._begun = anyio.Event()
        self._perform: Callable[[str, dict[str, Any]], Awaitable[Answer]] = self._ask_daemon
        self._look_at = 0.0
        self._gone_at: float | None = None

    @property
    def short_id(self) -> str:
        """The run's id as people write it."""
        return self.asked.run_id[:8]

    async def conduct(self, *, detach: bool = False) -> Progress | None:
        """Ask for the run and follow it until it is over; None: it goes on by itself, in the daemon (``detach``).

        Raises what the operation raises; NotFound where no workspace is; NoDaemon; DaemonUnreachable; DaemonGone;
        LogLocked when others hold the log for too long; OutcomeUnknown.
        """
        workspace = self.layout.workspace
        if not (workspace / FOLDER).is_dir() and not (workspace / SHARE).is_dir():
            what = f"{workspace} is no workspace: it has neither {SHARE}/ nor {FOLDER}/"
            raise NotFound(what, "pmagent init makes it one; --workspace names another")
        deadline = time.monotonic() + PATIENCE_SECONDS
        waiting = ""
        while True:
            held = held_by_run(self.layout)
            refusal: PmagentError = HeldByRun(f"a run in another shell holds the log ({held})", _SIDE_BY_SIDE)
            if not held:
                try:
                    return await self._carried(detach=detach)
                except (LogLocked, HolderGone) as error:  # commands and daemons come and go
                    refusal = error
            elif held != waiting:
                waiting = held
                self._watcher.say(f"a run in another shell ({held}) holds the log; waiting for its end")
            self.asking = False
            if time.monotonic() > deadline:
                raise refusal
            await anyio.sleep(TRY_SECONDS)

    async def _carried(self, *, detach: bool) -> Progress | None:
        """``conduct``, once; asking again later is the same request."""
        if is_locked(self.layout.lock):
            return await self._through_daemon(detach=detach)
        if detach:
            raise NoDaemon("no daemon runs here that could carry the run", "start it: pmagent up")
        return await self._here()

    async def cancel(self, reason: str) -> None:
        """Have the run end in order, as soon as its request is durable. What stands in the way is told."""
        await self._begun.wait()
        request = {"request": new_request(CANCEL), "run_id": self.asked.run_id, "reason": reason}
        try:
            answer = await self._perform(CANCEL, request)
        except (DaemonUnreachable, RemoteError) as error:
            self._watcher.say(f"the run could not be cancelled: {error.message}")
            return
        if not answer.document["accepted"]:
            self._watcher.say(str(answer.document["text"]))

    async def _ask_daemon(self, name: str, arguments: dict[str, Any]) -> Answer:
        return await call_daemon(self.layout, name, arguments)

    async def _through_daemon(self, *, detach: bool) -> Progress | None:
        self.asking = True
        answer = await self._ask_daemon(RUN, self._arguments())
        self._begun.set()
        if detach and answer.document["end"] is None:
            return None
        with opened(self.layout) as history:
            progress = await self._follow(history, answer.document["position"], self._await_daemon)
        try:
            await self._ask_daemon(WRITTEN, {})
        except (DaemonUnreachable, RemoteError) as error:
            self._watcher.say(f"its documents may not be written yet ({error.message}); pmagent rebuild writes them")
        return progress

    async def _here(self) -> Progress:
        async with open_host(self.layout.workspace, RUN) as host:
            left = open_runs(host)
            if left:
                names = ", ".join(name[:8] for name in left[:4]) + (", …" if len(left) > 4 else "")
                self._watcher.say(f"left open by an earlier process, and taken up while this one runs: {names}")

            async def ask(name: str, arguments: dict[str, Any]) -> Answer:
                return await perform(host, name, arguments)

            self._perform = ask
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail_with_log, host)
                tasks.start_soon(watch_surfaces, host)
                self.asking = True
                answer = await ask(RUN, self._arguments())
                self._begun.set()
                news = _News(host)
                history = History(host.storage, BlobStore(RealDisk(), str(self.layout.blobs)))
                progress = await self._follow(history, answer.document["position"], news.wait)
                await host.flush()
                tasks.cancel_scope.cancel()
        return progress

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = msgspec.to_builtins(self.asked)
        return {"request": self.asked.run_id, **arguments}

    async def _follow(self, history: History, position: int, wait: Callable[[], Awaitable[None]]) -> Progress:
        """Fold the run's events from its request at ``position`` on, telling of each; returns when it is over."""
        follower = Follower(history.storage, position)
        while True:
            found = follower.poll()
            if found is None or isinstance(found, Pause):
                await wait()
                continue
            changes = self._folded(history, position, found)
            progress = self.progress
            assert progress is not None, "the request is durable, and comes first"
            self._watcher.told(progress, changes)
            if progress.over:
                return progress
            await anyio.lowlevel.checkpoint()

    def _folded(self, history: History, position: int, found: Sequence[StoredEvent]) -> list[Change]:
        changes: list[Change] = []
        for stored in found:
            if stored.position == position:
                self.progress = Progress(typed(stored, history.blobs))
                if self.progress.asked.plan != self.asked.plan:
                    self._watcher.say(f"the plan holds secrets, which are masked: tools get {MASK} in their place")
            elif self.progress is not None and stored.correlation == self.asked.run_id and not self.progress.over:
                changes += self.progress.fold(typed(stored, history.blobs))
        return changes

    async def _await_daemon(self) -> None:
        """Wait for news of another process. Raises DaemonGone when there will be none."""
        await anyio.sleep(POLL_SECONDS)
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        if self._gone_at is None:
            if not is_locked(self.layout.lock):
                self._gone_at = now
                self._watcher.say(f"the daemon is gone; waiting {BACK_SECONDS:g} s for it to come back")
        elif daemon_listens(self.layout):
            self._gone_at = None
            self._watcher.say("the daemon is back")
        elif now - self._gone_at > BACK_SECONDS:
            raise DaemonGone(
                f"the daemon is gone, and the run {self.short_id} stands as it is",
                f"pmagent up takes it up again; pmagent runs {self.short_id} shows it",
            )


_SIDE_BY_SIDE: Final = "wait for its end; or start pmagent up first, then runs go side by side"


class _News:
    """Tells when something has become durable in a host of this process."""

    def __init__(self, host: Host) -> None:
        self._event = anyio.Event()
        host.runtime.listen(self._hear)

    def _hear(self, *_: object) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Return when something has since the last time."""
        await self._event.wait()
        self._event = anyio.Event()
