"""The guest socket: hooks say what agents do, and are told what holds (docs/guests.md).

A hook sends one JSON line; the daemon says soon that it has taken it, and then, in another line, what the hook is to
print. The socket takes nothing else: nothing that comes over it approves, resumes, or changes a policy.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio
import structlog
from anyio.abc import TaskStatus

from pmagent.guests.drafter import Drafter
from pmagent.guests.drafting import Begin
from pmagent.guests.gate import Gate
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

BURST: Final = 64
"""So many connections are taken in one turn of the event loop at most."""
_CHUNK: Final = 64 * 1024

_log = structlog.get_logger("pmagent")


async def serve(host: Host, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Answer hooks, and take in what they left while no daemon ran, until cancelled."""
    gate = host.resources[Gate]
    gate.drafter = Drafter(lambda: Begin(str(host.layout.workspace), gate.key(host)), partial(gate.record, host))
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_in, host, gate)
            await _listen(host, _Open(host, gate), task_status)
    finally:
        gate.drafter.close()


async def _listen(host: Host, open_ones: _Open, listening: TaskStatus[None]) -> None:
    """Serve the socket until cancelled; it is gone then. ``listening`` is told when hooks may ask. Raises OSError."""
    path = host.layout.guest_socket
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


class _Open(dict["_Connection", None]):
    """The connections that are open, the oldest first; and those of them, in ``asked``, whose line has come in this
    turn."""

    def __init__(self, host: Host, gate: Gate) -> None:
        super().__init__()
        self.user = os.getuid()
        self.loop = asyncio.get_running_loop()
        self.host = host
        self.gate = gate
        self.asked: list[_Connection] = []
        self._telling: asyncio.TimerHandle | None = None

    def answer(self) -> None:
        """Answer those that have asked: together, as far as that goes."""
        asked, self.asked = self.asked, []
        if not asked:
            return
        if self._telling is None:
            self._telling = self.loop.call_later(TAKEN_SECONDS, self._tell)
        self.gate.at_once(self.host, asked)

    def has_place(self) -> bool:
        """Whether one more may come. Where all places are taken, the oldest one that has not sent its line gives up its
        own: whoever holds connections open and says nothing keeps no hook out."""
        if len(self) >= CONNECTIONS_MAX and (silent := next((one for one in self if not one.line), None)) is not None:
            silent.close()
        return len(self) < CONNECTIONS_MAX

    def _tell(self) -> None:
        """Tell all that wait that their lines were taken."""
        self._telling = None
        for one in self:
            one.tell()


def _arrived(bound: socket.socket, open_ones: _Open) -> None:
    for _ in range(BURST):  # then others have a turn
        try:
            client, _ = bound.accept()
        except BlockingIOError:
            break
        except OSError as error:  # too many open files, or it went away
            _log.warning("a hook was not let in", why=error.strerror)
            break
        pid, user, _ = peer(client)
        if user not in (open_ones.user, 0) or not open_ones.has_place():
            _log.warning("a hook was not let in", open=len(open_ones))
            client.close()
            continue
        _Connection(client, pid, open_ones).receive()
    open_ones.answer()


class _Connection:
    """A hook, from its line to its answer. The socket is used as it is: a transport would cost as much as a verdict."""

    __slots__ = ("_client", "_content", "_late", "_loop", "_open", "_task", "_told", "_watched", "line", "pid")

    def __init__(self, client: socket.socket, pid: int, open_ones: _Open) -> None:
        self.line = b""
        self.pid = pid
        self._client = client
        self._open = open_ones
        self._content = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._loop = open_ones.loop
        self._late: asyncio.TimerHandle | None = None
        self._told = self._watched = False
        open_ones[self] = None

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
        if part is not None and not self._content and part.endswith(b"\n") and self._late is None:  # mostly
            self.line = part[:-1]
            self._open.asked.append(self)
            return
        self._content += part or b""
        if not self._content.endswith(b"\n"):
            if self._late is None:
                self._late = self._loop.call_later(LINE_SECONDS, self.close)
                self._watch(self._receive_more)
            return
        if self._late is not None:
            self._late.cancel()
            self._unwatch()
        self.line, self._content = bytes(self._content[:-1]), bytearray()
        self._open.asked.append(self)

    def _receive_more(self) -> None:
        self.receive()
        self._open.answer()

    def tell(self) -> None:
        """Say that the whole line was taken, if that was not said."""
        if self.line and not self._told:
            self._told = True
            with suppress(OSError):  # a hook that has gone is told nothing
                self._client.send(TAKEN, socket.MSG_DONTWAIT)

    def answered(self, printed: bytes) -> None:
        """See Hook."""
        if self not in self._open:
            return
        if left := self._begin(printed):
            self._task = self._loop.create_task(self._finish(left))
        else:
            self.close()

    def wait(self, printed: Coroutine[Any, Any, bytes]) -> None:
        """See Hook."""
        if self in self._open:
            self._task = self._loop.create_task(self._wait(printed))
        else:
            printed.close()

    def _begin(self, printed: bytes) -> bytes:
        """Send what goes at once; the rest."""
        if not self._told:
            printed = TAKEN + printed
        self._told = True
        try:
            return printed[self._client.send(printed, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return printed
        except OSError:  # it has gone
            return b""

    async def _wait(self, printed: Coroutine[Any, Any, bytes]) -> None:
        try:
            await self._finish(self._begin(await printed))
        finally:
            self._task = None
            self.close()

    async def _finish(self, left: bytes) -> None:
        try:
            self._client.settimeout(0)
            with suppress(OSError):
                await self._loop.sock_sendall(self._client, left)
        finally:
            self._task = None
            self.close()

    def gone(self) -> asyncio.Future[None]:
        """See Hook; it has nothing more to say."""
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
        self._open.pop(self, None)
        self._unwatch()
        self._client.close()
