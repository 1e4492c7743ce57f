"""The guest socket: hooks say what agents do, and are told what holds (docs/guests.md).

A hook sends one JSON line; the daemon says soon that it has taken it, and then, in another line, what the hook is to
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
from pmagent.service.wire import peer
from pmagent.workspace.layout import reachable

CONNECTIONS_MAX: Final = 512
LINE_BYTES_MAX: Final = 24 << 20
TAKEN: Final = b'{"taken":true}\n'
TAKEN_SECONDS: Final = 0.1
"""A hook that has no answer after so long is told that its line was taken; others hear it with the answer."""
LINE_SECONDS: Final = 10.0
"""So long a hook may take to send its line."""

BURST: Final = 16
"""So many connections are taken in one turn of the event loop at most."""
_CHUNK: Final = 64 * 1024

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
    path, open_ones = host.layout.guest_socket, _Open(os.getuid(), answered)
    path.unlink(missing_ok=True)  # left by a daemon that was killed: we hold the lock, so it is nobody's
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        with reachable(path) as address:  # in a folder that only this user may enter
            bound.bind(address)
        path.chmod(0o600)
        bound.listen(CONNECTIONS_MAX)
        bound.settimeout(0)
        loop.add_reader(bound, _arrived, bound, open_ones)
        listening.started()
        try:
            await anyio.sleep_forever()
        finally:
            loop.remove_reader(bound)
            path.unlink(missing_ok=True)
            for one in tuple(open_ones):
                one.close()


class _Open(set["_Connection"]):
    """The connections that are open."""

    def __init__(self, user: int, answered: Answered) -> None:
        super().__init__()
        self.user = user
        self.answered = answered
        self._telling: asyncio.TimerHandle | None = None

    def tell_later(self) -> None:
        """Tell all that wait then that their lines were taken."""
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TAKEN_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        for one in self:
            one.tell()


def _arrived(bound: socket.socket, open_ones: _Open) -> None:
    for _ in range(BURST):  # then others have a turn
        try:
            client, _ = bound.accept()
        except BlockingIOError:
            return
        except OSError as error:  # too many open files, or it went away
            _log.warning("a hook was not let in", why=error.strerror)
            return
        pid, user, _ = peer(client)
        if user not in (open_ones.user, 0) or len(open_ones) >= CONNECTIONS_MAX:
            _log.warning("a hook was not let in", open=len(open_ones))
            client.close()
            continue
        _Connection(client, pid, open_ones).receive()


class _Connection:
    """A hook, from its line to its answer. The socket is used as it is: a transport would cost as much as a verdict."""

    def __init__(self, client: socket.socket, pid: int, open_ones: _Open) -> None:
        self._client = client
        self._pid = pid
        self._open = open_ones
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._late: asyncio.TimerHandle | None = None
        self._told = self._watched = False
        open_ones.add(self)

    def receive(self) -> None:
        """Take what has come: mostly the whole line is there at once."""
        try:
            part = self._client.recv(_CHUNK, socket.MSG_DONTWAIT)
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
                self._watch(self.receive)
            return
        if self._late is not None:
            self._late.cancel()
            self._unwatch()
        self._task = self._loop.create_task(self._answer(bytes(self._content[:-1])))
        self._open.tell_later()

    def tell(self) -> None:
        """Say that the whole line was taken, if that was not said."""
        if self._task is not None and not self._told:
            self._told = True
            with suppress(OSError):  # a hook that has gone is told nothing
                self._client.send(TAKEN, socket.MSG_DONTWAIT)

    async def _answer(self, line: bytes) -> None:
        try:
            printed = await self._open.answered(line, self._pid, self.gone)
            if not self._told:
                printed = TAKEN + printed
            self._told = True
            with suppress(OSError):
                sent = self._client.send(printed, socket.MSG_DONTWAIT)
                if sent < len(printed):
                    self._client.settimeout(0)
                    await self._loop.sock_sendall(self._client, printed[sent:])
        finally:
            self._task = None
            self.close()

    def gone(self) -> asyncio.Future[None]:
        """Done when the hook has gone; it has nothing more to say."""
        left: asyncio.Future[None] = self._loop.create_future()

        def look() -> None:
            self._unwatch()
            if not left.done():
                left.set_result(None)

        self._watch(look)
        return left

    def _watch(self, ready: Callable[[], None]) -> None:
        self._watched = True
        self._loop.add_reader(self._client, ready)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._client)

    def close(self) -> None:
        """End it. Whoever waits is told nothing, and its hook refuses."""
        if self._late is not None:
            self._late.cancel()
        if self._task is not None:
            self._task.cancel()
        self._open.discard(self)
        self._unwatch()
        self._client.close()
