"""Asking for a job, and following it to its end: through the daemon, or in this process (docs/design.md §11.2).

Either way the job's events are read from the log, so that what is shown is what is durable.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, Protocol

import anyio
import anyio.lowlevel
import anyio.to_thread

from pmagent.contracts.payload import typed
from pmagent.events.errors import LogLocked, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.log import ahead_seconds
from pmagent.events.reader import Follower
from pmagent.events.reader import Progress as Pause
from pmagent.events.storage import LogReader
from pmagent.jobs.asking import EDGES, WRITTEN, open_jobs
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import JobRequest
from pmagent.jobs.registry import Holder, held_by_job
from pmagent.projections.views.jobs import Change, JobView
from pmagent.service.answer import Answer
from pmagent.service.client import (
    PATIENCE_SECONDS,
    TRY_SECONDS,
    DaemonUnreachable,
    HolderGone,
    call_daemon,
    daemon_listens,
    held_elsewhere,
    new_request,
)
from pmagent.service.host import Host, fail_with_log, open_host
from pmagent.service.liveness import Liveness
from pmagent.service.operations import goes_by_configuration, perform
from pmagent.service.pausing import PAUSED, RESUMED, by_whom, refuse_if_paused
from pmagent.service.wire import RemoteError
from pmagent.when import spoken
from pmagent.workspace.layout import Layout
from pmagent.workspace.presence import require_workspace
from pmagent.workspace.watching import watch_surfaces

NEWS_SECONDS: Final = 0.05
"""A follower of another process waits so long for news at once: a cancellation waits for that, too."""
LOOK_SECONDS: Final = 0.5
"""How often a follower looks whether the daemon is there."""
BACK_SECONDS: Final = 30.0
"""So long a daemon may be gone until its follower gives up."""


class NoDaemon(PmagentError, exit_code=5):
    """A job is to go on by itself, and no daemon is there to carry it."""


class DaemonGone(PmagentError, exit_code=5):
    """The daemon ended while its job was followed, and did not come back."""


class HeldByJob(PmagentError, exit_code=5):
    """A job in another process holds the log, and takes no requests."""


class JobObserver(Protocol):
    """A screen for the job. Nothing here may wait."""

    def updated(self, job: JobView, changes: Sequence[Change]) -> None:
        """The job has gone on."""

    def say(self, text: str) -> None:
        """Something to know besides."""


class JobFollower:
    """One job, from its request to its end. ``job`` is None until the request is durable."""

    def __init__(self, layout: Layout, request: JobRequest, observer: JobObserver) -> None:
        self.layout = layout
        self.request = request
        self.kind = request.kind
        self.job: JobView | None = None
        self.asking = False
        """Whether the request may have been recorded."""
        self._observer = observer
        self._begun = anyio.Event()
        self._perform: Callable[[str, dict[str, Any]], Awaitable[Answer]] = self._ask_daemon
        self._look_at = 0.0
        self._gone_at: float | None = None
        self._daemon = Liveness(layout)

    @property
    def shown(self) -> str:
        """The command that shows the job."""
        return f"{self.kind.command} {self.request.id[:8]}"

    async def run(self, *, detach: bool = False) -> JobView | None:
        """Ask for the job and follow it until it is over; None: it goes on by itself, in the daemon (``detach``).

        Raises what the operation raises; NotFound where no workspace is; NoDaemon; Paused where no daemon is and
        effects are paused; DaemonUnreachable; DaemonGone; LogLocked when others hold the log for too long;
        OutcomeUnknown.
        """
        workspace = self.layout.workspace
        require_workspace(workspace)
        deadline = time.monotonic() + PATIENCE_SECONDS
        waiting: Holder | None = None
        while True:
            if (held := held_by_job(self.layout)) is None:
                try:
                    return await self._carried(detach=detach)
                except (LogLocked, HolderGone) as error:  # commands and daemons come and go
                    refusal: PmagentError = error
            else:
                what = f"the {held.kind.word} of another shell ({held.process}) holds the log"
                refusal = HeldByJob(what, _SIDE_BY_SIDE)
                if held != waiting:
                    waiting = held
                    self._observer.say(f"{what}; waiting for its end")
            self.asking = False
            if time.monotonic() > deadline:
                raise refusal
            await anyio.sleep(TRY_SECONDS)

    async def attach(self, position: int) -> JobView:
        """Follow a job that was requested at ``position`` before, whoever carries it. Raises DaemonGone when nobody
        does."""
        with opened(self.layout) as jobs, closing(self._daemon):
            if not self.layout.store.holder().live and not jobs.view(self.kind, position).over:
                raise DaemonGone(
                    f"nobody carries the {self.kind.word} {self.request.id[:8]} now",
                    f"pmagent up takes it up; {self.shown} shows it",
                )
            self.asking = True
            return await self._follow(jobs, position, partial(self._await_anybody, jobs.storage))

    async def _await_anybody(self, storage: LogReader, position: int) -> None:
        """``_await_daemon``; but the command of another shell, which may carry the job too, answers nobody."""
        if held_by_job(self.layout) is None:
            await self._await_daemon(storage, position)
        else:
            await anyio.to_thread.run_sync(storage.changes, position, LOOK_SECONDS)

    async def _carried(self, *, detach: bool) -> JobView | None:
        """``run``, once; asking again later is the same request."""
        if self.layout.store.holder().live:
            return await self._through_daemon(detach=detach)
        if detach:
            raise NoDaemon(f"no daemon runs here that could carry the {self.kind.word}", "start it: pmagent up")
        return await self._here()

    async def cancel(self, reason: str) -> None:
        """Have the job end in order, as soon as its request is durable. An obstacle is reported to the observer."""
        await self._begun.wait()
        kind = self.kind
        try:
            answer = await self._perform(
                kind.cancel, {"request": new_request(kind.cancel), kind.id_field: self.request.id, "reason": reason}
            )
        except (DaemonUnreachable, RemoteError) as error:
            self._observer.say(f"the {kind.word} could not be cancelled: {error.message}")
            return
        if not answer.document["accepted"]:
            self._observer.say(str(answer.document["text"]))

    async def _ask_daemon(self, name: str, arguments: dict[str, Any]) -> Answer:
        return await call_daemon(self.layout, name, arguments, say=self._observer.say)

    async def _through_daemon(self, *, detach: bool) -> JobView | None:
        self.asking = True
        arguments = self.request.arguments
        if await anyio.to_thread.run_sync(held_elsewhere, self.layout):
            edge = next(edge for edge in EDGES if edge.kind is self.kind)
            arguments = await anyio.to_thread.run_sync(edge.carried, arguments)
        answer = await self._ask_daemon(self.kind.ask, arguments)
        self._begun.set()
        await self._say_if_paused()
        if detach and answer.document["end"] is None:
            return None
        with opened(self.layout) as jobs, closing(self._daemon):
            news = partial(self._await_daemon, jobs.storage)
            job = await self._follow(jobs, answer.document["position"], news)
        try:
            written = await self._ask_daemon(WRITTEN, {})
            for warning in written.warnings:
                self._observer.say(warning)
        except (DaemonUnreachable, RemoteError) as error:
            self._observer.say(f"its documents may not be written yet ({error.message}); pmagent rebuild writes them")
        return job

    async def _say_if_paused(self) -> None:
        """Say why nothing begins, and by how much the log's time is wrong; that it cannot be found out is no reason to
        leave the job."""
        try:
            status = (await self._ask_daemon("status", {})).document
        except (DaemonUnreachable, RemoteError) as error:
            self._observer.say(f"it is not known whether effects are paused ({error.message})")
            return
        if status["paused"]:
            self._observer.say(f"{by_whom(status['paused'])}: what has not begun waits until pmagent resume")
        self._say_if_ahead(status["log"].get("ahead_s", 0.0))

    def _say_if_ahead(self, seconds: float) -> None:
        if seconds:
            ahead = f"the log's time stands {spoken(seconds)} ahead of this machine's clock"
            self._observer.say(f"{ahead}; nothing waits for it")

    async def _here(self) -> JobView:
        kind = self.kind
        workspace = self.layout.workspace
        configured = goes_by_configuration(workspace, kind.ask, self.request.arguments)
        async with open_host(workspace, kind.ask, configured=configured) as host:
            refuse_if_paused(host)
            self._say_if_ahead(ahead_seconds(host.tail.time))
            if left := open_jobs(host, kind):
                names = ", ".join(name[:8] for name in left[:4]) + (", …" if len(left) > 4 else "")
                self._observer.say(f"left open by an earlier process, and taken up while this one runs: {names}")

            async def ask(name: str, arguments: dict[str, Any]) -> Answer:
                return await perform(host, name, arguments)

            self._perform = ask
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail_with_log, host)
                tasks.start_soon(watch_surfaces, host)
                self.asking = True
                answer = await ask(kind.ask, self.request.arguments)
                self._begun.set()
                news = _News(host)
                jobs = Jobs(host.storage, self.layout.store.blobs())
                job = await self._follow(jobs, answer.document["position"], news.wait)
                for warning in (await ask(WRITTEN, {})).warnings:
                    self._observer.say(warning)
                tasks.cancel_scope.cancel()
        return job

    async def _follow(self, jobs: Jobs, position: int, wait: Callable[[int], Awaitable[None]]) -> JobView:
        """Fold the job's events from its request at ``position`` on, telling of each; returns when it is over. ``wait``
        is called with the position behind which there may be news."""
        follower = Follower(jobs.storage, position)
        while True:
            found = follower.poll()
            if found is None or isinstance(found, Pause):
                await wait(follower.position - 1)
                continue
            changes = self._folded(jobs, position, found)
            job = self.job
            assert job is not None, "the request is durable, and comes first"
            self._observer.updated(job, changes)
            if job.over:
                return job
            await anyio.lowlevel.checkpoint()

    def _folded(self, jobs: Jobs, position: int, found: Sequence[StoredEvent]) -> list[Change]:
        changes: list[Change] = []
        for stored in found:
            if stored.position == position:
                requested = typed(stored, jobs.blobs)
                self.job = self.kind.begun(requested, stored.sum)
                if remark := self.kind.remark(self.request.asked, requested.data):
                    self._observer.say(remark)
            elif stored.type in _SAID and (self.job is None or not self.job.over):
                self._observer.say(_SAID[stored.type])
            elif self.job is not None and stored.correlation == self.request.id and not self.job.over:
                self.job, made = self.kind.folded(self.job, typed(stored, jobs.blobs), stored.sum)
                changes += made
        return changes

    async def _await_daemon(self, storage: LogReader, position: int) -> None:
        """Wait for news of another process. Raises DaemonGone when there will be none."""
        await anyio.to_thread.run_sync(storage.changes, position, NEWS_SECONDS)
        if self._gone_at is None and self._daemon.look() and self._daemon.state != "none":
            self._observer.say(self._daemon.text)
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        if self._gone_at is None:
            if not self.layout.store.holder().live:
                self._gone_at = now
                self._observer.say(f"the daemon is gone; waiting {BACK_SECONDS:g} s for it to come back")
        elif daemon_listens(self.layout):
            self._gone_at = None
            self._daemon.close()
            self._observer.say("the daemon is back")
        elif now - self._gone_at > BACK_SECONDS:
            raise DaemonGone(
                f"the daemon is gone, and the {self.kind.word} {self.request.id[:8]} stands as it is",
                f"pmagent up takes it up again; {self.shown} shows it",
            )


_SAID: Final = {
    PAUSED: "effects are paused: what has not begun waits until pmagent resume",
    RESUMED: "effects are not paused any more",
}
"""The texts for events that are not the job's own."""
_SIDE_BY_SIDE: Final = "wait for its end; or start pmagent up first, then they go side by side"


class _News:
    """Tells when something has become durable in a host of this process."""

    def __init__(self, host: Host) -> None:
        self._event = anyio.Event()
        host.runtime.listen(self._hear)

    def _hear(self, *_: object) -> None:
        self._event.set()

    async def wait(self, _: int) -> None:
        """Return when something has since the last time."""
        await self._event.wait()
        self._event = anyio.Event()
