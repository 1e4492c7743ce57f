"""The worker: it claims attempts from a log's database, lets boxes make them, and reports (docs/design.md §4.7).

The rules of a claim are ``pmagent.actors.core.claims``; here are its connection, its clock and its box.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.core.claims import Ask, Begin, Claim, Deed, End, Extend, Keep, Report, Row
from pmagent.actors.sandbox import artifacts
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, SandboxSpec
from pmagent.events.attempts import Claimed, TableUnreachable, WorkerTable
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import worker_table
from pmagent.events.lease import SECOND
from pmagent.workers import box
from pmagent.workers.line import carry_lines
from pmagent.workers.settings import BadWorker, WorkerFile, refusal
from pmagent.workers.wish import BadLoad, Told, Wish, boottime, unpack

LEASE: Final = 30 * SECOND
"""Of a claim, until its row has told another one."""

IDLE_SECONDS: Final = 0.5
"""Between two looks for an attempt."""

TRIAL_SECONDS: Final = 10.0
"""So long the program may take with which the sandbox is tried."""

JOIN_SECONDS: Final = 10.0
"""A worker says so often that it is there."""

WORD_BYTES_MAX: Final = 16 * 1024 * 1024

_log: Final = structlog.get_logger("worker")


class Box:
    """The box of one claimed attempt. ``ended`` is set when ``told`` says how; "" while nobody knows."""

    def __init__(self, wish: Wish, claimed: Claimed, claim: str, settings: WorkerFile, table: WorkerTable) -> None:
        self.ended = asyncio.Event()
        self.told = Told(worker=settings.name, stopped="its box ended")
        self.folder = f"{settings.folder}/{claim}"
        self._wish = wish
        self._claim = claim
        self._log = claimed.log
        self._left = claimed.bytes_left
        self._settings = settings
        self._table = table
        self._until = 0
        self._numbers: dict[int, int] = {}
        self._over = False
        self._handle = -1
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def is_over(self) -> bool:
        """Whether it is to end, or its time is over."""
        return self._over or boottime() >= self._until

    def begin(self, until: int) -> None:
        """Start it; it ends itself at ``until``."""
        self._until = until
        self._task = asyncio.get_running_loop().create_task(self._run())

    def extend(self, until: int) -> None:
        """It may run until then."""
        self._until = until
        self._say(box.Until(until))

    def end(self, *, at_once: bool) -> None:
        """End it; ``at_once``: without telling it first."""
        if at_once:
            self._over = True
            self._kill()
        elif not self._say(box.End()):
            self._over = True

    async def close(self) -> None:
        """Nothing of it is left when this returns."""
        self.end(at_once=True)
        if self._task is not None:
            await asyncio.wait([self._task])
        await anyio.to_thread.run_sync(artifacts.remove, self.folder)

    async def _run(self) -> None:
        try:
            self.told = await self._made()
        except (BadLoad, OSError) as error:
            self.told = Told(refused=str(error)[:2000])
        except PmagentError as error:
            self.told = Told(stopped=error.message[:2000])
        finally:
            self.told = msgspec.structs.replace(self.told, worker=self._settings.name)
            self.ended.set()

    async def _made(self) -> Told:
        root = f"{self.folder}/workspace"
        if why := refusal(self._wish, self._log, root, self._settings):
            mend = f"let the worker.toml of {self._settings.name} permit it, or give the task other labels"
            return Told(refused=why, mend=mend, security=True)
        await anyio.to_thread.run_sync(self._lay_out)
        if self.is_over():
            return self.told
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", "pmagent.workers.box", stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._handle = os.pidfd_open(process.pid)
        settings = self._settings
        try:
            self._say(box.Begin(self._wish, self.folder, settings.tools, settings.sizes, self._until))
            if self.is_over():
                self._kill()
            return await self._heard(process)
        finally:
            self._kill()
            await process.wait()
            os.close(self._handle)
            self._handle = -1

    def _kill(self) -> None:
        """Kill its process, and its sandbox dies with it. By its descriptor: asyncio's own way may reap it unseen."""
        if self._handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _lay_out(self) -> None:
        for name, load in (("workspace", self._wish.tree), ("inputs", self._wish.inputs)):
            os.makedirs(f"{self.folder}/{name}")
            Path(self.folder, name).chmod(0o755)  # tools are somebody else where the worker is root
            while load is not None:
                try:
                    unpack(load, self._table.load(self._claim, load.sha256), f"{self.folder}/{name}")
                    break
                except TableUnreachable:  # nothing was written: it is read as a whole first
                    if self.is_over():
                        raise
                    time.sleep(IDLE_SECONDS)

    async def _heard(self, process: asyncio.subprocess.Process) -> Told:
        assert process.stdout is not None, "it was made so"
        while True:
            try:
                size = int.from_bytes(await process.stdout.readexactly(4), "big")
                word = await process.stdout.readexactly(min(size, WORD_BYTES_MAX))
                said = msgspec.msgpack.decode(word, type=box.Said)
            except (asyncio.IncompleteReadError, msgspec.DecodeError):
                return self.told
            if isinstance(said, box.Ended):
                return said.told
            if not await self._passed_on(said):
                return Told(stopped="it wrote more than it may, or is not claimed so any more")

    async def _passed_on(self, said: box.Out) -> bool:
        """Send a piece until it is there, or the box is over."""
        n = self._numbers[said.part] = self._numbers.get(said.part, -1) + 1
        while not self.is_over():
            try:
                return await anyio.to_thread.run_sync(self._table.put, self._claim, said.part, n, said.content)
            except TableUnreachable:
                await asyncio.sleep(IDLE_SECONDS)
        return False

    def _say(self, word: msgspec.Struct) -> bool:
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            return False
        self._process.stdin.write(box.framed(word))
        return True


class Place:
    """One of the places for attempts of a worker: claim after claim."""

    def __init__(self, settings: WorkerFile, stopping: asyncio.Event) -> None:
        self._settings = settings
        self._table = worker_table(settings.database, replicated=settings.replicated)
        self._data = worker_table(settings.database, replicated=settings.replicated)
        self._box: Box | None = None
        self.stopping = stopping

    async def go(self) -> None:
        """Make one attempt after the other until ``stopping`` is set. Raises PmagentError."""
        try:
            while not self.stopping.is_set():
                if not await self._attempt():
                    await _pause(self.stopping, IDLE_SECONDS)
        finally:
            self._table.close()
            self._data.close()

    async def _attempt(self) -> bool:
        """Ask for an attempt, and make it; whether there was one."""
        claim = Claim(secrets.token_hex(16), LEASE)
        self._box = None
        return await self._carried_out(claim)

    async def _carried_out(self, claim: Claim) -> bool:
        try:
            await self._obey(claim, claim.ask(boottime()))
            had = claim.phase != "over"
            while claim.phase != "over":
                await self._wait(claim)
                now = boottime()
                made = self._box
                if made is not None and made.ended.is_set() and claim.phase == "running":
                    await self._obey(claim, claim.ended(msgspec.json.encode(made.told).decode(), now))
                elif self.stopping.is_set() and claim.phase == "running" and made is not None:
                    made.told = Told(stopped="the worker stops")
                    made.end(at_once=True)
                    await made.ended.wait()
                else:
                    await self._obey(claim, claim.timer(now))
            return had
        finally:
            if self._box is not None:
                with anyio.CancelScope(shield=True):
                    await self._box.close()

    async def _wait(self, claim: Claim) -> None:
        """Until the claim's time is due, its box ends, or the worker is to stop."""
        seconds = max(0.0, (claim.due - boottime()) / SECOND)
        events = [self._box.ended] if self._box is not None and claim.phase == "running" else []
        if claim.phase == "running":
            events.append(self.stopping)
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            if waits:
                await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(seconds)
        finally:
            for wait in waits:
                wait.cancel()

    async def _obey(self, claim: Claim, deeds: Sequence[Deed]) -> None:
        waiting = list(deeds)
        while waiting:
            deed = waiting.pop(0)
            match deed:
                case Ask() | Keep() | Report():
                    waiting += await self._said(claim, deed)
                case Begin(until):
                    assert self._box is not None, "its row was read"
                    self._box.begin(until)
                case Extend(until) if self._box is not None:
                    self._box.extend(until)
                case End() if self._box is not None:
                    self._box.end(at_once=claim.phase != "running" or boottime() >= claim.term.ends)

    async def _said(self, claim: Claim, deed: Ask | Keep | Report) -> list[Deed]:
        """Send a statement, and tell the claim what became of it."""
        settings, sent = self._settings, deed.sent
        try:
            if isinstance(deed, Report):
                state = await anyio.to_thread.run_sync(self._table.report, claim.claim, deed.result.encode())
                if state == "done":
                    return claim.reported(sent)
                _log.warning("result refused", claim=claim.claim, state=state or "unknown")
                return claim.gone(sent, None)
            if isinstance(deed, Keep):
                found = await anyio.to_thread.run_sync(self._table.keep, claim.claim)
            else:
                given = claim.claim, settings.name, settings.labels, settings.logs
                found = await anyio.to_thread.run_sync(self._table.claim, *given)
        except TableUnreachable as error:
            if not isinstance(deed, Ask):
                _log.warning("not reached", claim=claim.claim, error=error.message)
            return claim.unknown(sent, boottime())
        if found is None and isinstance(deed, Keep):
            _log.warning("not claimed any more", claim=claim.claim)
        if found is None:
            return claim.nothing(sent) if isinstance(deed, Ask) else claim.gone(sent, None)
        claim.term.length = found.lease_ms * 1_000_000
        row = Row("claimed", 0, claim.claim, found.renewals, found.stop)
        if self._box is None:
            _log.info("claimed", claim=claim.claim, log=found.log, position=found.position)
            try:
                wish = msgspec.json.decode(found.wish, type=Wish)
            except msgspec.DecodeError as error:
                raise BadWorker(f"an attempt of the log {found.log} is not understood: {error}",
                                "use the release of its daemon") from error
            self._box = Box(wish, found, claim.claim, settings, self._data)
        now = boottime()
        return claim.claimed(sent, row, now) if isinstance(deed, Ask) else claim.kept(sent, row, now)


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await stopping.wait()


async def _present(settings: WorkerFile, stopping: asyncio.Event) -> None:
    """Say now and then that the worker is there."""
    table = worker_table(settings.database, replicated=settings.replicated)
    try:
        while not stopping.is_set():
            try:
                await anyio.to_thread.run_sync(
                    table.join, settings.name, settings.labels, settings.logs, settings.capacity
                )
            except TableUnreachable as error:
                _log.warning("not reached", error=error.message)
            await _pause(stopping, JOIN_SECONDS)
    finally:
        table.close()


async def _work(settings: WorkerFile) -> None:
    stopping, failures = asyncio.Event(), list[PmagentError]()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, 3 * settings.capacity)

    async def kept(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except PmagentError as error:  # the others end in order
            failures.append(error)
            stopping.set()

    async with anyio.create_task_group() as tasks:
        if settings.tools:
            tasks.start_soon(kept, partial(_present, settings, stopping))
        if settings.line is not None:
            tasks.start_soon(kept, partial(carry_lines, settings, stopping))
        for _ in range(settings.capacity if settings.tools else 0):
            tasks.start_soon(kept, Place(settings, stopping).go)
    if failures:
        raise failures[0]


def check(settings: WorkerFile) -> None:
    """Look whether this worker could work: its role, its folder, and a sandbox with a program that does nothing. Raises
    PmagentError, OSError."""
    table = worker_table(settings.database, replicated=settings.replicated)
    try:
        table.check()
    finally:
        table.close()
    held = _folder(settings)
    try:
        if settings.tools:
            _try_box(settings)
    finally:
        os.close(held)


def _try_box(settings: WorkerFile) -> None:
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        spec = SandboxSpec(argv=("true",), artifacts=os.path.realpath(folder), limits=Limits(seconds=TRIAL_SECONDS))
        outcome = anyio.run(run, spec)
    if outcome.exit_code != 0:
        end = f"exit code {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
        raise BadWorker(f"no program can run here: true ended with {end}", "pmagent doctor looks closer")


def _folder(settings: WorkerFile) -> int:
    """Make the folder of attempts this worker's alone; a descriptor that holds it. Raises BadWorker, OSError."""
    path = Path(settings.folder)
    path.mkdir(0o700, parents=True, exist_ok=True)
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(held)
    try:
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise BadWorker(f"{path} can be changed by others", "give folder = one of this user's own")
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(held)
        raise BadWorker(f"another worker works in {path}", "give each its own folder") from error
    except BaseException:
        os.close(held)
        raise
    return held


def serve(settings: WorkerFile) -> None:
    """Work until SIGTERM or SIGINT: then what runs is ended and told as stopped. Raises PmagentError, OSError."""
    check(settings)
    held = _folder(settings)
    try:
        for left in os.listdir(held):
            artifacts.remove(f"{settings.folder}/{left}")
        _log.info("works", name=settings.name, labels=settings.labels, capacity=settings.capacity, logs=settings.logs)
        anyio.run(_work, settings)
    finally:
        os.close(held)


