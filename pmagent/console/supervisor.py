"""The daemon's side of the console: its process is started, listened to, started again when it ends, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import Process

from pmagent.events.user_state import VARIABLE
from pmagent.workspace.trust import NotAccepted, resolved
from pmagent.workspace.user_registry import RegistryUnusable

if TYPE_CHECKING:
    from pmagent.service.host import Host

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before it is started again, the longer the more often it has ended shortly after its start."""
STEADY_SECONDS: Final = 60.0
"""A console that was served for so long has ended for a reason of its own."""
STOP_SECONDS: Final = 5.0
LINE_BYTES_MAX: Final = 8192

_log = structlog.get_logger("pmagent")


class Supervisor:
    """Keeps the console of a daemon served, while it stands by, and when it holds the log. ``kept`` is to run as a
    task, once; a console that cannot be served is told of, and is nobody's end."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._host: Host | None = None
        self._pid = 0
        self.begun = False

    def join(self, host: Host) -> None:
        """``host`` holds the log, and knows its console by its process id from now on."""
        self._host, host.console_pid = host, self._pid

    async def keep(self) -> None:
        """Keep it served until cancelled, or ended."""
        self.begun = True
        try:
            with self._scope:
                await self._keep()
        finally:
            self._ended.set()

    async def end(self) -> None:
        """End it, if it was begun."""
        self._scope.cancel()
        if self.begun:
            await self._ended.wait()

    async def _keep(self) -> None:
        try:
            settings = (await anyio.to_thread.run_sync(resolved, self._workspace, os.environ)).settings.console
        except (NotAccepted, RegistryUnusable) as error:
            _log.warning("no console is served", reason=error.message, mend=error.hint)
            return
        if not settings.enabled:
            return
        ended = 0
        while True:
            begun = anyio.current_time()
            code = await self._serve_once()
            if anyio.current_time() - begun >= STEADY_SECONDS:
                ended = 0
            pause = PAUSES[min(ended, len(PAUSES) - 1)]
            _log.warning("the console has ended", exit_code=code, again_in_s=pause)
            await anyio.sleep(pause)
            ended += 1

    async def _serve_once(self) -> int:
        command = [sys.executable, "-I", "-m", "pmagent.console.process", str(self._workspace)]
        process = await anyio.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
            cwd="/",
        )
        self._runs_as(process.pid)
        try:
            await _listen(process)
            return await process.wait()
        finally:
            self._runs_as(0)
            with anyio.CancelScope(shield=True):
                await _end(process)

    def _runs_as(self, pid: int) -> None:
        self._pid = pid
        if self._host is not None:
            self._host.console_pid = pid


async def _end(process: Process) -> None:
    assert process.stdin is not None, "made with a pipe"
    await process.stdin.aclose()  # that is the word to end
    with anyio.move_on_after(STOP_SECONDS) as patience:
        await process.wait()
    if patience.cancelled_caught:
        process.kill()
        await process.wait()
    await process.aclose()


async def _listen(process: Process) -> None:
    """Pass on what it says, until it says nothing more."""
    assert process.stdout is not None, "made with a pipe"
    buffered = b""
    async for chunk in process.stdout:
        *lines, buffered = (buffered + chunk).split(b"\n")
        for line in lines:
            _tell(line)
        buffered = buffered[-LINE_BYTES_MAX:]


def _tell(line: bytes) -> None:
    try:
        message: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        _log.warning("the console said something that is not understood")
        return
    level, event = message.pop("level", "warning"), str(message.pop("event", ""))
    if level == "ready":
        _log.info("the console is served; pmagent console lets you in", url=event)
        return
    log = {"info": _log.info, "error": _log.error}.get(str(level), _log.warning)
    log(event, **{name: value for name, value in message.items() if value})


def _environment() -> dict[str, str]:
    """Nothing that a page needs not: no keys of models. ``PG…`` is how a log in PostgreSQL is reached."""
    kept = ("PATH", "HOME", VARIABLE, "LANG", "LC_ALL", "TZ", "PMAGENT_CONSOLE_", "SSL_CERT", "PG")
    return {name: value for name, value in os.environ.items() if name.startswith(kept)}
