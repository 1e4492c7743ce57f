"""The guest socket: hooks say what agents do, and are told what holds (docs/guests.md).

A hook sends one JSON line; the daemon says at once that it has taken it, and then, in another line, what the hook is to
print. The socket takes nothing else: nothing that comes over it approves, resumes, or changes a policy. A connection
may bring one line after another.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Final, cast

import anyio
import structlog
from anyio.abc import TaskStatus

from pmagent.guests.gate import Gate
from pmagent.guests.spool import take_in
from pmagent.service.host import Host
from pmagent.service.wire import peer_pid, peer_uid
from pmagent.workspace.layout import reachable

CONNECTIONS_MAX: Final = 512
LINE_BYTES_MAX: Final = 24 << 20
TAKEN: Final = b'{"taken":true}\n'
LINE_SECONDS: Final = 10.0
"""So long a hook may take to send its line."""

Answered = Callable[[bytes, int, "asyncio.Future[None]"], Awaitable[bytes]]
"""(line, process that asks, done when it has gone) -> the line to print."""

_log = structlog.get_logger("pmagent")


async def serve(host: Host, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Answer hooks, and take in what they left while no daemon ran, until cancelled."""
    gate = host.resources[Gate]

    async def answered(line: bytes, pid: int, gone: asyncio.Future[None]) -> bytes:
        return await gate.answered(host, line, pid, gone)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_in, host, gate)
        await listen(host, answered, task_status)


async def listen(host: Host, answered: Answered, listening: TaskStatus[None]) -> None:
    """Serve the socket until cancelled; it is gone then. ``listening`` is told when hooks may ask. Raises OSError."""
    path, open_ones = host.layout.guest_socket, set[_Connection]()
    path.unlink(missing_ok=True)  # left by a daemon that was killed: we hold the lock, so it is nobody's
    loop, bound = asyncio.get_running_loop(), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with reachable(path) as address:  # in a folder that only this user may enter
        bound.bind(address)
    path.chmod(0o600)
    server = await loop.create_unix_server(lambda: _Connection(answered, open_ones), sock=bound, backlog=512)
    listening.started()
    try:
        await server.serve_forever()
    finally:
        path.unlink(missing_ok=True)
        for one in tuple(open_ones):
            one.close()


class _Connection(asyncio.Protocol):
    """A hook, from its line to its answer."""

    def __init__(self, answered: Answered, open_ones: set[_Connection]) -> None:
        self._answered = answered
        self._open = open_ones
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let in whoever may come in."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("socket")
        self._pid = peer_pid(peer)
        if peer_uid(peer) not in (os.getuid(), 0) or len(self._open) >= CONNECTIONS_MAX:
            _log.warning("a hook was not let in", open=len(self._open))
            self._transport.abort()
            return
        self._open.add(self)
        self._late = self._loop.call_later(LINE_SECONDS, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._content += data
        if self._task is None:
            self._next()
        elif len(self._content) > LINE_BYTES_MAX:
            self._transport.abort()

    def _next(self) -> None:
        end = self._content.find(b"\n")
        if end < 0:
            if len(self._content) > LINE_BYTES_MAX:
                self._transport.abort()
            return
        self._late.cancel()
        line = bytes(self._content[:end])
        del self._content[: end + 1]
        self._transport.write(TAKEN)
        self._task = self._loop.create_task(self._answer(line))

    async def _answer(self, line: bytes) -> None:
        printed = await self._answered(line, self._pid, self._gone)
        self._task = None
        if not self._transport.is_closing():
            self._transport.write(printed)
            if self._content:
                self._next()

    def connection_lost(self, _: Exception | None) -> None:
        """The hook has gone."""
        self._open.discard(self)
        if hasattr(self, "_late"):
            self._late.cancel()
        if not self._gone.done():
            self._gone.set_result(None)

    def close(self) -> None:
        """The daemon ends: whoever waits is told nothing, and its hook refuses."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()
