"""The streams behind a real uvicorn on loopback: how they end, and what becomes of who does not read."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest
import uvicorn
from anyio.abc import SocketStream

from pmagent.console.live.stream import Streams
from pmagent.console.serving import _OwnUserOnly, _Server
from pmagent.events.event import Draft
from tests.support.cases import on_loop
from tests.support.console_streams import Console, EventSource, Unchunked

SECONDS = 120.0


class Served:
    """A console's streams at ``port``."""

    def __init__(self, console: Console, port: int, server: uvicorn.Server) -> None:
        self.console = console
        self.port = port
        self.server = server

    async def connect(self, path: str) -> SocketStream:
        """A connection that has asked for ``path``."""
        stream = await anyio.connect_tcp("127.0.0.1", self.port)
        await stream.send(self._request(path))
        return stream

    def connect_deaf(self, path: str) -> socket.socket:
        """The same with little room for what is not read, and of which nothing is read."""
        deaf = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", self.port))
        deaf.sendall(self._request(path))
        return deaf

    def _request(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()

    def append(self, count: int, text: str = "") -> None:
        """So many more events."""
        data = msgspec.json.encode({"text": text})
        start = self.console.tail
        self.console.append(*(Draft("t.noted", None, data, f"f{start + n}", "t", "r") for n in range(count)))


@asynccontextmanager
async def serving(slow_seconds: float = 60.0) -> AsyncIterator[Served]:
    """A server; at the end of the block it is told to end, as the console's process does it."""
    console = Console(segment_bytes=1 << 20, run_bytes=32 * 1024, kept_max=8)
    console.streams = Streams(console.feed, console.ended, slow_seconds=slow_seconds)
    console.app.router.routes[:] = console.streams.routes
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        console.app, http=_OwnUserOnly, ws="none", lifespan="off", log_config=None, access_log=False,
        timeout_graceful_shutdown=3,
    )  # fmt: skip
    server = _Server(config)
    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(console.streams.run)
            tasks.start_soon(lambda: server.serve(sockets=[listener]))
            yield Served(console, listener.getsockname()[1], server)
            console.ended.set()
            server.should_exit = True


class Heard:
    """The bytes and events that have come on a connection."""

    def __init__(self, stream: SocketStream) -> None:
        self.source = EventSource()
        self._stream = stream
        self._chunks = Unchunked()

    async def until(self, event: str) -> None:
        """Read until a message of that name has come."""
        while not self.source.all(event):
            await self.more()

    async def more(self) -> None:
        """Read what comes next."""
        with anyio.fail_after(SECONDS):
            self.source.feed(self._chunks.take(await self._stream.receive()))


def read_to_the_end(connection: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    connection.settimeout(SECONDS)
    got = b""
    while data := connection.recv(65_536):
        got += data
    return got


async def to_the_end(stream: SocketStream) -> None:
    """Read until the connection ends: EndOfStream."""
    with anyio.fail_after(SECONDS):
        while True:
            await stream.receive()


@on_loop
async def test_streams_end_by_themselves_and_nothing_is_complained_of() -> None:
    with Logged() as records:
        async with serving() as served:
            stream = await served.connect("/live/log?after=0")
            heard = Heard(stream)
            await heard.until("at")
            assert heard.source.rows() == [1]
        with anyio.fail_after(SECONDS):
            await heard.until("over")
            assert heard.source.told[-1].data["why"] == "ended"
            with pytest.raises(anyio.EndOfStream):
                await to_the_end(stream)
        await stream.aclose()
    assert records == []


@on_loop
async def test_who_does_not_read_is_hung_up_on_and_costs_little_until_then() -> None:
    with Logged() as records:
        async with serving(slow_seconds=0.4) as served:
            served.append(2_000, "x" * 500)
            deaf = served.connect_deaf("/live/log?after=0")
            with anyio.fail_after(SECONDS):
                while not served.console.streams.open:
                    await anyio.lowlevel.checkpoint()
                (stream,) = served.console.streams.open
                await stream.over.wait()
            assert stream._position < served.console.tail, "it was told no more than it took"
            assert served.console.streams.open == set()
            other = await served.connect("/live/log?after=2000")
            heard = Heard(other)
            await heard.until("at")
            assert heard.source.rows() == [2001]
            await other.aclose()
            with deaf:
                got = await anyio.to_thread.run_sync(read_to_the_end, deaf)
            assert not got.endswith(b"\r\n0\r\n\r\n"), "it was cut off, and not ended"
    assert records == []


@on_loop
async def test_who_sends_no_whole_head_is_hung_up_on_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.console.serving.HEAD_SECONDS", 0.2)
    with Logged() as records:
        async with serving() as served:
            live = await served.connect("/live/log?after=0")
            heard = Heard(live)
            await heard.until("at")
            for begun in (b"", b"GET /live HTTP/1.1\r\nHost: 127"):
                with socket.create_connection(("127.0.0.1", served.port), timeout=SECONDS) as slow:
                    slow.sendall(begun)
                    assert await anyio.to_thread.run_sync(_until_hung_up, slow) == b""
            served.append(1)
            while heard.source.rows() != [1, 2]:
                await heard.more()
            await live.aclose()
    assert records == []


def _until_hung_up(connection: socket.socket) -> bytes:
    try:
        return read_to_the_end(connection)
    except ConnectionResetError:
        return b""


@on_loop
async def test_who_leaves_is_forgotten() -> None:
    async with serving() as served:
        stream = await served.connect("/live")
        await Heard(stream).until("at")
        (open_one,) = served.console.streams.open
        await stream.aclose()
        with anyio.fail_after(SECONDS):
            await open_one.over.wait()
        assert not served.console.streams.open


class Logged:
    """The records that uvicorn and asyncio log in a block, as warnings or worse."""

    def __enter__(self) -> list[str]:
        self._records: list[str] = []
        keep = self._records

        class Keeper(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                keep.append(record.getMessage())

        self._handler = Keeper(logging.WARNING)
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addHandler(self._handler)
        return self._records

    def __exit__(self, *_: object) -> None:
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).removeHandler(self._handler)
