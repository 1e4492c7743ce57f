"""The line to the device that is plugged into this host, carried to the holder of a log (docs/design.md §4.8).

Each life of the line has a process of its own (``python -I -m pmagent.workers.line``), which opens the device and knows
nothing of what it carries. It ends, and the device sees that nobody holds it, when the worker says so or ends, when the
life is over, or with its lease: a process beside it kills it then, also where it is stopped.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from pmagent.actors.pla.line.discovery import PortUnusable, Wanted, find, require_pyserial
from pmagent.actors.pla.line.holding import Port
from pmagent.actors.pla.wire.carried import OPENING, PAUSE_SECONDS, Carrier, Garbled, told
from pmagent.events.attempts import Letter, TableUnreachable
from pmagent.events.evidence import worker_table
from pmagent.events.lease import SECOND
from pmagent.service.lease import Fence, fence_of
from pmagent.workers.settings import WorkerFile
from pmagent.workers.wish import boottime

IDLE_SECONDS: Final = 0.5
"""Between two looks for a line that is wanted."""

ANSWER_SECONDS: Final = 10.0
"""So long the holder has for its first answer."""

LOOK_SECONDS: Final = 0.05
END_SECONDS: Final = 5.0
"""So long a process has to end when it is told to; its lease is over by then."""

_log: Final = structlog.get_logger("worker")


class Begin(msgspec.Struct, frozen=True):
    """What such a process is told: its ``claim`` on the line, the log's database, and the device."""

    claim: str
    database: str
    replicated: bool
    device: str
    serial: str


async def carry_lines(settings: WorkerFile, stopping: asyncio.Event) -> None:
    """Carry one life of the line after the other until ``stopping`` is set. Raises PmagentError, OSError."""
    assert settings.line is not None, "it has a device"
    table, reached = worker_table(settings.database, replicated=settings.replicated), True
    try:
        while not stopping.is_set():
            claim, log = secrets.token_hex(16), None
            try:
                log = await anyio.to_thread.run_sync(table.claim_line, claim, settings.name, settings.logs)
                reached = True
            except TableUnreachable as error:
                if reached:  # said once, and not each time
                    _log.warning("not reached", error=error.message)
                reached = False
            if log is None:
                with anyio.move_on_after(IDLE_SECONDS):
                    await stopping.wait()
                continue
            _log.info("carries the line", log=log)
            line = settings.line
            begin = Begin(claim, settings.database, settings.replicated, line.device, line.serial)
            code = await _life(begin, stopping)
            _log.info("the line has ended", log=log, code=code)
    finally:
        table.close()


async def _life(begin: Begin, stopping: asyncio.Event) -> int:
    """One life, until it ends or ``stopping`` is set; the exit code of its process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-m", "pmagent.workers.line", stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None, "it was made so"
    waits = [asyncio.ensure_future(process.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        process.stdin.write(msgspec.json.encode(begin) + b"\n")
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        process.stdin.close()
        with anyio.move_on_after(END_SECONDS):
            await process.wait()
    finally:
        for wait in waits:
            wait.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            code = await process.wait()
    return code


class _Held:
    """The lease of the line, as its fence sees it."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.renewed: Callable[[int], None] = lambda _ends: None

    @property
    def ends(self) -> int:
        """See Lease."""
        return self._carrier.ends

    def live(self) -> bool:
        """See Lease."""
        return self._carrier.live(boottime())


class _Life:
    """One life of the line, in the process that carries it."""

    def __init__(self, begin: Begin, stopping: asyncio.Event) -> None:
        self._begin = begin
        self._stopping = stopping
        self._table = worker_table(begin.database, replicated=begin.replicated)
        self._carrier = Carrier()
        self._held = _Held(self._carrier)
        self._port: Port | None = None
        self._state = OPENING
        self._awake = asyncio.Event()

    async def run(self) -> None:
        """Carry it until it is over. Raises PmagentError."""
        with fence_of(self._held) as fence:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, tasks.cancel_scope)
                    await self._exchange(fence)
                    tasks.cancel_scope.cancel()
            finally:
                with anyio.CancelScope(shield=True):
                    if self._port is not None:
                        await self._port.close()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """End it when the worker says so, and with its lease."""
        until = boottime() + int(ANSWER_SECONDS * SECOND)
        while not self._stopping.is_set():
            now = boottime()
            if not (self._carrier.live(now) if self._carrier.answered else now < until):
                break
            with anyio.move_on_after(LOOK_SECONDS):
                await self._stopping.wait()
        scope.cancel()

    async def _exchange(self, fence: Fence) -> None:
        while True:
            self._awake.clear()
            if self._port is not None and self._carrier.has_room:
                self._carrier.put(self._port.take())
            try:
                came = await self._letter()
            except TableUnreachable as error:
                _log.warning("not reached", error=error.message)
                await asyncio.sleep(LOOK_SECONDS)
                continue
            if came is None or self._state not in ("", OPENING):
                return
            try:
                self._carrier.came(came)
                self._held.renewed(self._held.ends)
                fence.check()
                if self._port is None and self._carrier.answered:
                    await self._open(fence)
                elif self._port is not None:
                    self._pass_on(self._port, came, fence)
            except Garbled as garbled:
                self._state = told("garbled", str(garbled))
            with anyio.move_on_after(PAUSE_SECONDS):
                await self._awake.wait()

    async def _letter(self) -> Letter | None:
        letter = self._carrier.letter(boottime(), self._state)
        ask = partial(self._table.carry_line, self._begin.claim, letter)
        return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)

    async def _open(self, fence: Fence) -> None:
        """Open the device, under a live lease: from here on this process is killed in time."""
        try:
            require_pyserial()
            from pmagent.actors.pla.line.port import open_port  # only who opens a port needs pyserial

            found = await anyio.to_thread.run_sync(find, Wanted(self._begin.device, self._begin.serial))
            if fence.live():
                self._port = await open_port(found.path, self._awake.set)
                self._state = ""
        except PortUnusable as trouble:
            self._state = told(trouble.code, trouble.message, trouble.hint)

    def _pass_on(self, port: Port, came: Letter, fence: Fence) -> None:
        if port.ended:
            self._state = told("unplugged", "the device is gone")
            return
        if port.is_clear and fence.live() and (data := self._carrier.taken(came)):
            port.write(data)


def carry(begin: Begin, worker: BinaryIO) -> None:
    """Carry one life of the line, until it is over or ``worker`` has ended. Raises PmagentError."""

    async def run() -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()

        def listen() -> None:
            worker.read()
            loop.call_soon_threadsafe(stopping.set)

        threading.Thread(target=listen, daemon=True).start()
        await _Life(begin, stopping).run()

    anyio.run(run)


def main() -> None:
    """Carry the line as told on standard input; its end is the worker's."""
    begin = msgspec.json.decode(sys.stdin.buffer.readline(), type=Begin)
    carry(begin, sys.stdin.buffer)
    os._exit(0)  # a thread of ours still listens


if __name__ == "__main__":
    main()
