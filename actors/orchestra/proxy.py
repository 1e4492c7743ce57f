"""The filtering proxy of one sandbox: takes what the tool asks for, lets ``proxy_rules`` judge it, and carries it out.

One request on a connection: what follows it is not read, so nothing can be smuggled behind it to another host. Every
request is a contact, in the order in which they come.
"""

from __future__ import annotations

import errno
import socket
from http import HTTPStatus
from typing import Final

import anyio
import h11

from actors.orchestra import outside as outsides
from actors.orchestra.contacts import Call, Ledger
from actors.orchestra.outside import HostUnreachable, Outside
from actors.orchestra.proxy_forward import Forward
from actors.orchestra.proxy_rules import Asked, Caps, ContactRefused, Rules, judge
from actors.orchestra.proxy_streams import ENDS, Line, Tool, farewell, next_event, pump

_PASSING: Final = frozenset((errno.ECONNABORTED, errno.EAGAIN, errno.EPROTO, errno.EINTR))
_FULL: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_FULL_SECONDS: Final = 1.0
"""So long the proxy waits when this machine has no descriptor or memory left for one more connection."""


class Proxy:
    """Serves one run; ``ledger`` tells what became of it."""

    def __init__(self, granted: Rules, outside: Outside, caps: Caps) -> None:
        self.ledger = Ledger(caps)
        self._granted = granted
        self._outside = outside
        self._caps = caps
        self._slots = anyio.Semaphore(caps.at_once)

    async def serve(self, listener: socket.socket) -> None:
        """Serve whoever connects to ``listener``, until cancelled; then every connection is closed."""
        listener.setblocking(False)  # noqa: FBT003  (takes no name)
        async with anyio.create_task_group() as group:
            while True:
                await self._slots.acquire()
                group.start_soon(self._attend, await _accepted(listener))

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
        said = h11.Connection(h11.SERVER, max_incomplete_event_size=self._caps.head_bytes)
        method = b""
        try:
            request = await self._head(tool, said)
            if request is None:
                return
            method = request.method
            asked = judge(method, request.target, tuple(request.headers), self._granted)
            call.host, call.port = asked.host, asked.port
            self.ledger.note(call)
            self.ledger.admit()
            await self._carry_out(tool, said, asked, call)
        except ContactRefused as refusal:
            if not call.host:
                call.host, call.port = refusal.host, refusal.port
                self.ledger.note(call)
            call.verdict = "allowed" if isinstance(refusal, HostUnreachable) else "refused"
            call.reason = call.reason or refusal.message
            await farewell(tool, _told(refusal, head_only=method == b"HEAD"))
        except ENDS:
            return  # the tool has gone, or its line was cut; the ledger knows

    async def _head(self, tool: Tool, said: h11.Connection) -> h11.Request | None:
        """The request; None when the tool only came and went."""
        try:
            with anyio.fail_after(self._caps.head_seconds):
                event = await next_event(tool, said)
        except TimeoutError as error:
            raise ContactRefused("no request came in time", "send it at once", status=408) from error
        except h11.RemoteProtocolError as error:
            refusal = ContactRefused("what came is no request that could be read", "speak HTTP/1.1")
            refusal.status = error.error_status_hint
            raise refusal from error
        return event if isinstance(event, h11.Request) else None

    async def _carry_out(self, tool: Tool, said: h11.Connection, asked: Asked, call: Call) -> None:
        seconds = self._caps.connect_seconds
        endpoints = await outsides.find(asked.host, asked.port, self._outside, seconds)
        stream, call.address = await outsides.connect(asked.host, endpoints, seconds)
        async with Line(stream, call, self.ledger) as line:
            if asked.tunnel:
                await _tunnel(tool, said, line)
            else:
                await Forward(tool, said, line, self._caps.head_bytes).carry_out(asked)


async def _tunnel(tool: Tool, said: h11.Connection, line: Line) -> None:
    """Bytes both ways, until both sides have ended, or one breaks off."""
    await tool.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    early, ended = said.trailing_data
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


def _told(refusal: ContactRefused, *, head_only: bool) -> bytes:
    """The answer that tells why there is none."""
    text = f"{refusal.message}\n{refusal.hint}\n".encode("ascii", "backslashreplace")
    head = (
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if head_only else text)
