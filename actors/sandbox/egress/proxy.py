"""The filtering proxy of one sandbox: takes what the tool asks for, lets ``proxy_rules`` judge it, and carries it out.

One request on a connection: what follows it is not read, so nothing can be smuggled behind it to another host. Every
request is a contact, in the order in which they come. When all places are taken, the oldest idle connection is closed
for the next: one whose request has not come, or whose answer is sent.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

import anyio
import anyio.lowlevel
import h11

from pmagent.actors.sandbox.egress import upstream as upstreams
from pmagent.actors.sandbox.egress.forward import Forward
from pmagent.actors.sandbox.egress.rules import Caps, ContactRefused, ProxyRequest, Rules, judge
from pmagent.actors.sandbox.egress.streams import ENDS, Line, Tool, abort, farewell, next_head, pump
from pmagent.actors.sandbox.egress.upstream import HostUnreachable, Upstream
from pmagent.actors.sandbox.egress.usage import Call, Ledger

_PASSING: Final = frozenset((errno.ECONNABORTED, errno.EAGAIN, errno.EPROTO, errno.EINTR))
_FULL: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_FULL_SECONDS: Final = 1.0
"""So long the proxy waits when this machine has no descriptor or memory left for one more connection."""


_GOING_SECONDS: Final = 1.0
"""In which a connection that was told to give way has gone, long since, if it was not about to be of use after all."""


class Proxy:
    """Serves one run; ``ledger`` tells what became of it."""

    def __init__(self, granted: Rules, upstream: Upstream, caps: Caps) -> None:
        self.ledger = Ledger(caps)
        self._granted = granted
        self._upstream = upstream
        self._caps = caps
        self._slots = anyio.Semaphore(caps.at_once)
        self._idle: dict[anyio.CancelScope, float] = {}
        """The scopes in which connections may give way, the oldest first, and from when on."""

    async def serve(self, listener: socket.socket) -> None:
        """Serve whoever connects to ``listener``, until cancelled; then every connection is closed."""
        listener.setblocking(False)  # noqa: FBT003  (takes no name)
        async with anyio.create_task_group() as group:
            while True:
                await anyio.wait_readable(listener)
                await self._place()
                group.start_soon(self._attend, await _accepted(listener))

    async def _place(self) -> None:
        """Take a place. While there is none, the oldest idle connection has to give way."""
        while True:
            with contextlib.suppress(anyio.WouldBlock):
                return self._slots.acquire_nowait()
            await anyio.lowlevel.checkpoint()  # whose bytes have come is idle no longer
            now = anyio.current_time()
            oldest, due = next(iter(self._idle.items()), (None, now + self._caps.idle_seconds))
            if oldest is not None and due <= now:
                del self._idle[oldest]
                oldest.cancel()
                due = now + _GOING_SECONDS
            with anyio.CancelScope(deadline=due):
                return await self._slots.acquire()

    @contextlib.contextmanager
    def _gives_way(self) -> Iterator[anyio.CancelScope]:
        """Cancel the block when another connection needs the place."""
        with anyio.CancelScope() as scope:
            self._idle[scope] = anyio.current_time() + self._caps.idle_seconds
            try:
                yield scope
            finally:
                self._idle.pop(scope, None)

    async def _attend(self, accepted: socket.socket) -> None:
        call = Call()
        try:
            with anyio.CancelScope(shield=True):  # or nobody would close it
                tool = await Tool.from_socket(accepted)
            async with tool:
                with anyio.move_on_after(self._caps.seconds) as time:
                    await self._converse(tool, call)
                if time.cancelled_caught:
                    call.reason = f"cut after {self._caps.seconds:g} s"
        finally:
            self._slots.release()

    async def _converse(self, tool: Tool, call: Call) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=self._caps.head_bytes)
        method = b""
        try:
            request = await self._head(tool, connection, call)
            if request is None:
                return
            method = request.method
            asked = judge(method, request.target, tuple(request.headers), self._granted)
            call.host, call.port = asked.host, asked.port
            self.ledger.note(call)
            self.ledger.admit()
            await self._carry_out(tool, connection, asked, call)
        except ContactRefused as refusal:
            if not call.host:
                call.host, call.port = refusal.host, refusal.port
                self.ledger.note(call)
            call.verdict = "allowed" if isinstance(refusal, HostUnreachable) else "refused"
            call.reason = call.reason or refusal.message
            with self._gives_way():
                await farewell(tool, _error_response(refusal, head_only=method == b"HEAD"))
        except ENDS:
            return  # the tool has gone, or its line was cut; the ledger knows

    async def _head(self, tool: Tool, connection: h11.Connection, call: Call) -> h11.Request | None:
        """The request; None when the tool only came and went, or gave way."""
        event: object = None
        try:
            with anyio.fail_after(self._caps.head_seconds), self._gives_way() as waiting:
                event = await next_head(tool, connection, self._caps.head_bytes)
        except TimeoutError as error:
            raise ContactRefused("no request came in time", "send it at once", status=408) from error
        except h11.RemoteProtocolError as error:
            why = ("what came is no request that could be read", "speak HTTP/1.1")
            if error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
                why = (str(error), "send less in its headers")
            raise ContactRefused(*why, status=error.error_status_hint) from error
        if waiting.cancelled_caught:
            call.verdict, call.reason = "refused", "no request came before its place was needed"
            self.ledger.note(call)
        return event if isinstance(event, h11.Request) else None

    async def _carry_out(self, tool: Tool, connection: h11.Connection, asked: ProxyRequest, call: Call) -> None:
        seconds = self._caps.connect_seconds
        endpoints = await upstreams.find(asked.host, asked.port, self._upstream, seconds)
        stream, call.address = await upstreams.connect(asked.host, endpoints, seconds)
        async with Line(stream, call, self.ledger) as line:
            if asked.tunnel:
                await _tunnel(tool, connection, line)
                return
            whole = await Forward(tool, connection, line, self._caps.head_bytes).carry_out(asked)
        if whole:
            with self._gives_way():
                await farewell(tool, b"")
        else:
            abort(tool)


async def _tunnel(tool: Tool, connection: h11.Connection, line: Line) -> None:
    """Bytes both ways, until both sides have ended, or one breaks off."""
    await tool.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    early, ended = connection.trailing_data
    if early:
        await line.send(early)

    async def to_the_end(source: Tool | Line, sink: Tool | Line) -> None:
        try:
            await pump(source, sink)
        except ENDS:
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(to_the_end, line, tool)
        if ended:
            await line.send_eof()
        else:
            group.start_soon(to_the_end, tool, line)


async def _accepted(listener: socket.socket) -> socket.socket:
    """The next connection. Waits as long as this machine has no room for one."""
    while True:
        await anyio.wait_readable(listener)
        try:
            return listener.accept()[0]
        except OSError as error:
            if error.errno in _FULL:
                await anyio.sleep(_FULL_SECONDS)
            elif error.errno not in _PASSING:
                raise


def _error_response(refusal: ContactRefused, *, head_only: bool) -> bytes:
    """The answer that tells why there is none."""
    text = f"{refusal.message}\n{refusal.hint}\n".encode("ascii", "backslashreplace")
    head = (
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else text)
