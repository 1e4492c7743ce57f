"""The guest socket: hooks say what agents do, and are told what holds (docs/guests.md).

A hook sends one JSON line; the daemon says at once that it has taken it, and then, in another line, what the hook is to
print. The socket takes nothing else: nothing that comes over it approves, resumes, or changes a policy.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
import structlog
from anyio.abc import TaskStatus

from pmagent.guests.gate import Gate, Gone
from pmagent.guests.spool import take_in
from pmagent.service.host import Host
from pmagent.service.wire import peer_pid, peer_uid
from pmagent.workspace.layout import reachable

CONNECTIONS_MAX: Final = 512
LINE_BYTES_MAX: Final = 24 << 20
TAKEN: Final = b'{"taken":true}\n'
LINE_SECONDS: Final = 10.0
"""So long a hook may take to send its line."""

BURST: Final = 16
"""So many connections are taken in one turn of the event loop at most."""
_CHUNK: Final = 256 * 1024

Answered = Callable[[bytes, int, Gone], Awaitable[bytes]]
"""(line, process that asks, what is done when it has gone) -> the line to print."""

_log = structlog.get_logger("pmagent")


async def serve(host: Host, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Answer hooks, and take in what they left while no daemon ran, until cancelled."""
    gate = host.resources[Gate]

    async def answered(line: bytes, pid: int, gone: Gone) -> bytes:
        return await gate.answered(host, line, pid, gone)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_in, host, gate)
        await listen(host, answered, task_status)


async def listen(host: Host, answered: Answered, listening: TaskStatus[None]) -> None:
    """Serve the socket until cancelled; it is gone then. ``listening`` is told when hooks may ask. Raises OSError."""
    path, open_ones = host.layout.guest_socket, set[_Connection]()
    path.unlink(missing_ok=True)  # left by a daemon that was killed: we hold the lock, so it is nobody's
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        with reachable(path) as address:  # in a folder that only this user may enter
            bound.bind(address)
        path.chmod(0o600)
        bound.listen(CONNECTIONS_MAX)
        bound.settimeout(0)
        loop.add_reader(bound, _arrived, bound, answered, open_ones)
        listening.started()
        try:
            await anyio.sleep_forever()
        finally:
            loop.remove_reader(bound)
            path.unlink(missing_ok=True)
            for one in tuple(open_ones):
                one.close()


def _arrived(bound: socket.socket, answered: Answered, open_ones: set[_Connection]) -> None:
    for _ in range(BURST):  # then others have a turn
        try:
            client, _ = bound.accept()
        except BlockingIOError:
            return
        except OSError as error:  # too many open files, or it went away
            _log.warning("a hook was not let in", why=error.strerror)
            return
        if peer_uid(client) not in (os.getuid(), 0) or len(open_ones) >= CONNECTIONS_MAX:
            _log.warning("a hook was not let in", open=len(open_ones))
            client.close()
            continue
        client.settimeout(0)
        _Connection(client, answered, open_ones).receive()


class _Connection:
    """A hook, from its line to its answer. The socket is used as it is: a transport would cost as much as a verdict."""

    def __init__(self, client: socket.socket, answered: Answered, open_ones: set[_Connection]) -> None:
        self._client = client
        self._answered = answered
        self._open = open_ones
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._late: asyncio.TimerHandle | None = None
        open_ones.add(self)

    def receive(self) -> None:
        """Take what has come: mostly the whole line is there at once."""
        try:
            part = self._client.recv(_CHUNK)
        except BlockingIOError:
            part = None
        except OSError:
            part = b""
        if part == b"" or len(self._content) > LINE_BYTES_MAX:
            self.close()
            return
        self._content += part or b""
        if not self._content.endswith(b"\n"):
            if self._late is None:
                self._late = self._loop.call_later(LINE_SECONDS, self.close)
                self._loop.add_reader(self._client, self.receive)
            return
        if self._late is not None:
            self._late.cancel()
            self._loop.remove_reader(self._client)
        with suppress(OSError):  # a hook that has gone is told nothing
            self._client.send(TAKEN)
        self._task = self._loop.create_task(self._answer(bytes(self._content[:-1])))

    async def _answer(self, line: bytes) -> None:
        try:
            printed = await self._answered(line, peer_pid(self._client), self.gone)
            with suppress(OSError):
                await self._loop.sock_sendall(self._client, printed)
        finally:
            self._task = None
            self.close()

    def gone(self) -> asyncio.Future[None]:
        """Done when the hook has gone; it has nothing more to say."""
        left: asyncio.Future[None] = self._loop.create_future()

        def look() -> None:
            self._loop.remove_reader(self._client)
            if not left.done():
                left.set_result(None)

        self._loop.add_reader(self._client, look)
        return left

    def close(self) -> None:
        """End it. Whoever waits is told nothing, and its hook refuses."""
        if self._late is not None:
            self._late.cancel()
        if self._task is not None:
            self._task.cancel()
        self._open.discard(self)
        self._loop.remove_reader(self._client)
        self._client.close()
