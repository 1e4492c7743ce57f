"""The console's streams without a network: a server over a log in memory, and browsers, cut off at any byte."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.types import ASGIApp

from pmagent.console.live.feed import Feed
from pmagent.console.live.stream import Streams
from pmagent.events.commit import Committer
from pmagent.events.event import Draft
from pmagent.events.log import now, opening_events
from pmagent.events.segment_log import SegmentLog
from pmagent.events.segments import SegmentReader
from pmagent.events.sequencer import Sequencer
from tests.support.memory_disk import MemoryDisk

FOLDER = "/log"
SECONDS = 120.0
ACCEPTS = "gzip, deflate, br, zstd"
"""As browsers say it."""


class Told(msgspec.Struct, frozen=True):
    """A message that a browser was given."""

    event: str
    data: Any
    id: str


class EventSource:
    """A browser's reading of the bytes of an event stream (WHATWG HTML, 9.2.6): ``told``, and ``last_id`` to come back
    with. Bytes may be cut anywhere; what is cut off at the end is forgotten with the connection."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.last_id = ""
        self.retry = 0
        self.begin()

    def begin(self) -> None:
        """Another connection."""
        self._unread = b""
        self._event, self._id = "", self.last_id
        self._data: list[str] = []

    def feed(self, data: bytes) -> None:
        """More bytes."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            assert b"\r" not in line, "it would end the line for a browser"
            self._line(line.decode("utf-8"))

    def _line(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self._dispatch()
        elif name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            assert "\0" not in value
            self._id = value
        elif name == "retry":
            self.retry = int(value)
        else:
            assert name == "", f"a field that browsers do not know: {name!r}"

    def _dispatch(self) -> None:
        self.last_id = self._id
        if self._data:
            self.told.append(Told(self._event, msgspec.json.decode("\n".join(self._data)), self.last_id))
        self._event, self._data = "", []

    def all(self, event: str) -> list[Any]:
        """The data of all messages of that name."""
        return [told.data for told in self.told if told.event == event]

    def rows(self) -> list[int]:
        """The positions of the rows that it was given, in order."""
        return [int(at) for data in self.all("lines") for at in re.findall(r'<tr id="e(\d+)"', data["html"])]


class Unchunked:
    """The body of an HTTP/1.1 answer that comes in chunks (RFC 9112, 7.1), however its bytes are cut."""

    def __init__(self) -> None:
        self.head = b""
        self._raw = b""

    def take(self, data: bytes) -> bytes:
        """More bytes; what of the body they complete."""
        self._raw += data
        if not self.head:
            head, found, rest = self._raw.partition(b"\r\n\r\n")
            if not found:
                return b""
            self.head, self._raw = head, rest
        body = b""
        while True:
            size, found, rest = self._raw.partition(b"\r\n")
            if not found or len(rest) < int(size, 16) + 2:
                return body
            body += rest[: int(size, 16)]
            self._raw = rest[int(size, 16) + 2 :]


class Browser:
    """Follows ``path`` and comes back when the connection has ended. ``budgets``: after so many bytes each of its next
    connections is cut; then no more. ``accepts``: what it says of codings."""

    def __init__(
        self, app: Callable[[], ASGIApp], path: str, query: Sequence[tuple[str, str]], budgets: Sequence[int],
        accepts: str,
    ) -> None:
        self._app = app
        self._path = path
        self._query = urlencode(query).encode()
        self._budgets = list(budgets)
        self._accepts = accepts.encode()
        self.source = EventSource()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.connections = 0
        self.news = anyio.Event()
        self.reads = anyio.Event()  # while it is not set, nothing is read
        self.reads.set()
        self.ended = False
        self._gone = anyio.Event()
        self.sending = 0

    def leave(self) -> None:
        """Close the connection; the next one comes by itself if it runs on."""
        self._gone.set()

    async def run(self) -> None:
        """Connect, again and again."""
        while True:
            await self.connect()
            await anyio.lowlevel.checkpoint()

    async def connect(self) -> None:
        """One connection, until its end."""
        self.connections += 1
        self.source.begin()
        self._gone = gone = anyio.Event()
        self.ended = False
        budget = self._budgets.pop(0) if self._budgets else None
        unpacked = zlib.decompressobj()
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal budget
            self.sending += 1
            try:
                await self.reads.wait()
                await anyio.lowlevel.checkpoint()
            finally:
                self.sending -= 1
            if gone.is_set():
                return
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
                return
            body = message["body"]
            if budget is not None:
                body, budget = body[:budget], budget - len(body)
            self.source.feed(unpacked.decompress(body) if "content-encoding" in self.headers else body)
            if budget is not None and budget < 0:
                gone.set()
            elif not message["more_body"]:
                self.ended = True
                assert unpacked.eof == ("content-encoding" in self.headers), "not the whole of what was packed"
            self.news.set()
            self.news = anyio.Event()

        headers = [(b"host", b"localhost"), (b"accept-encoding", self._accepts)]
        if self.source.last_id:
            headers.append((b"last-event-id", self.source.last_id.encode()))
        scope = {
            "type": "http", "method": "GET", "path": self._path, "raw_path": self._path.encode(), "headers": headers,
            "query_string": self._query, "http_version": "1.1", "scheme": "http", "root_path": "",
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "state": {}, "asgi": {"version": "3.0"},
        }
        await self._app()(scope, receive, send)
        self.news.set()
        self.news = anyio.Event()

    async def until(self, holds: Callable[[], object]) -> None:
        """Return when ``holds``, asked whenever something has come."""
        with anyio.fail_after(SECONDS):
            while not holds():
                await self.news.wait()

    async def at(self, position: int) -> None:
        """Return when it has been told that the log is at ``position``."""
        await self.until(lambda: any(data["position"] == position for data in self.source.all("at")))


class Console:
    """A log on a disk in memory, whose segments are small, and the streams over it. ``restart`` makes new ones."""

    def __init__(self, segment_bytes: int = 2_000, run_bytes: int = 900, kept_max: int = 4) -> None:
        self.disk = MemoryDisk()
        self._storage = SegmentLog(FOLDER, disk=self.disk, segment_bytes=segment_bytes).open()
        self._sequencer = Sequencer(self._storage.tail())
        self._committer = Committer(self._storage)
        self._sizes = (run_bytes, kept_max)
        self._count = 0
        first = opening_events(self._storage, self._storage.log_id(), None, self._sequencer, now())
        self._committer.submit(first)
        self._committer.commit()
        self.ended = anyio.Event()
        self.restart()

    @property
    def tail(self) -> int:
        """The log's last position."""
        return self._storage.tail().position

    def reader(self) -> SegmentReader:
        """Another reader of the log."""
        return SegmentReader(self.disk, FOLDER)

    def append(self, *drafts: Draft) -> None:
        """Append, durable when it returns. The streams hear of it by ``tell``, or when their feed runs."""
        self._committer.submit([self._sequencer.admit(draft, now()) for draft in drafts])
        self._committer.commit()

    def tell(self) -> None:
        """Let the feed tell all who listen, now."""
        for group in list(self.feed._groups):
            self.feed.tell(group)

    def restart(self) -> None:
        """Another server over the same log: it knows nothing of the one before."""
        run_bytes, kept_max = self._sizes
        self.feed = Feed(self.reader, run_bytes=run_bytes, kept_max=kept_max)
        self.streams = Streams(self.feed, self.ended)
        self.app = Starlette(routes=self.streams.routes)

    def browser(
        self, path: str, query: Sequence[tuple[str, str]] = (), budgets: Sequence[int] = (), accepts: str = ACCEPTS
    ) -> Browser:
        """A browser that connects to whatever server there is then."""
        return Browser(lambda: self.app, path, query, budgets, accepts)


@asynccontextmanager
async def browsing(*browsers: Browser) -> AsyncIterator[TaskGroup]:
    """Let them run for the length of the block."""
    async with anyio.create_task_group() as tasks:
        for browser in browsers:
            tasks.start_soon(browser.run)
        yield tasks
        tasks.cancel_scope.cancel()
