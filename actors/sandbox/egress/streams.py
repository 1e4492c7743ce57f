"""Building blocks of the proxy's connections: a counted line to the host, HTTP events, and an orderly end."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Final, Protocol, Self

import anyio
import anyio.abc
import h11

from pmagent.actors.sandbox.egress.usage import Call, Ledger, LimitReached

Tool = anyio.abc.SocketStream
"""The connection of the tool to its proxy."""

ENDS: Final = (
    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, h11.ProtocolError, LimitReached
)  # fmt: skip
"""How a conversation ends early: one side broke it off, or makes no sense any more, or has had enough."""

CHUNK: Final = 64 * 1024
"""So many bytes are received at once."""

_LINGER_SECONDS: Final = 2.0
_LINGER_BYTES: Final = 2**20


_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)
"""``struct linger``: on, no time."""


class Readable(Protocol):
    """Where bytes come from."""

    async def receive(self, max_bytes: int = CHUNK, /) -> bytes:
        """Some bytes. Raises anyio.EndOfStream at the end."""


class Writable(Protocol):
    """Where bytes go."""

    async def send(self, data: bytes, /) -> None:
        """Send all of them."""

    async def send_eof(self) -> None:
        """Say that no more will come."""


class Line:
    """A connection to the outside, every byte of which is counted."""

    def __init__(self, stream: anyio.abc.SocketStream, call: Call, ledger: Ledger) -> None:
        self._stream = stream
        self._call = call
        self._ledger = ledger

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.aclose()

    async def send(self, data: bytes, /) -> None:
        """Raises LimitReached when the run has sent enough."""
        self._ledger.sent(self._call, len(data))
        await self._stream.send(data)

    async def send_eof(self) -> None:
        """Say that no more will come."""
        await self._stream.send_eof()

    async def receive(self, max_bytes: int = CHUNK, /) -> bytes:
        """Some bytes. Raises LimitReached when the run has got enough, anyio.EndOfStream at the end."""
        data = await self._stream.receive(max_bytes)
        self._ledger.received(self._call, len(data))
        return data


async def pump(source: Readable, sink: Writable) -> None:
    """All bytes of ``source``, and its end, to ``sink``."""
    while True:
        try:
            data = await source.receive()
        except anyio.EndOfStream:
            await sink.send_eof()
            return
        await sink.send(data)


async def next_event(source: Readable, spoken: h11.Connection) -> h11.Event | type[h11.PAUSED]:
    """The next event of HTTP. Raises h11.RemoteProtocolError for what is none."""
    while True:
        event = spoken.next_event()
        if event is not h11.NEED_DATA:
            return event  # type: ignore[return-value]
        try:
            data = await source.receive()
        except anyio.EndOfStream:
            data = b""
        spoken.receive_data(data)


async def next_head(source: Readable, spoken: h11.Connection, most: int) -> h11.Event | type[h11.PAUSED]:
    """``next_event``, the head of a message: of ``most`` bytes, however they come, and no more are taken to find its
    end. Raises h11.RemoteProtocolError (431) for a longer one."""
    held = len(spoken.trailing_data[0])
    while True:
        event = spoken.next_event()
        if event is not h11.NEED_DATA:
            return event  # type: ignore[return-value]
        if held >= most:
            raise h11.RemoteProtocolError(f"the head is longer than {most} bytes", error_status_hint=431)
        try:
            data = await source.receive(most - held)
        except anyio.EndOfStream:
            data = b""
        held += len(data)
        spoken.receive_data(data)


async def farewell(tool: Tool, answer: bytes) -> None:
    """Send an answer, and read on for a moment: closed with bytes unread, a connection may lose what was sent on it."""
    try:
        await tool.send(answer)
        await tool.send_eof()
        left = _LINGER_BYTES
        with anyio.move_on_after(_LINGER_SECONDS):
            while left > 0:
                left -= len(await tool.receive())
    except ENDS:
        return


def abort(tool: Tool) -> None:
    """Let its end be a reset: an answer whose end is the connection's end would else look whole."""
    raw = tool.extra(anyio.abc.SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
