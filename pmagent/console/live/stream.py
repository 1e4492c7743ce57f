"""The two streams of the console, ``/live`` and ``/live/log``: each connection reads the log at its own pace.

A connection that does not read costs what uvicorn buffers for it (64 KiB and one message more), and is hung up on after
``SLOW_SECONDS``. When the server stops, the streams end by themselves, before uvicorn is told to wait for them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from pmagent.console.live.feed import PACE_SECONDS, Feed
from pmagent.console.live.filters import Filter, Filters, query_of
from pmagent.console.live.messages import Topics, at, at_end_of, daemon, over
from pmagent.console.live.packing import Piece, Wire, piece, wire_for
from pmagent.console.live.pulse import Liveness
from pmagent.console.pages.addresses import whole_number
from pmagent.console.pages.reading.log_address import LogPageQuery
from pmagent.events.errors import CorruptLog, NotFound, PmagentError

SLOW_SECONDS: Final = 60.0
"""So long a connection may leave unread what was sent."""
END_SECONDS: Final = 1.0
"""So long the streams may take to say their last word when the server stops."""
SEND_BYTES: Final = 64 * 1024
"""The size of one write, about: many events share it."""
SKIP_EVENTS: Final = 10_000
"""A page that is so far behind is stale, whatever has happened."""
TOPICS_MAX: Final = 64
RETRY_MS: Final = (500, 1500)
"""A browser comes back after so many milliseconds; not all of them at once."""

_HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "vary": "accept-encoding",
}  # fmt: skip


class Streams:
    """The routes over ``feed``, until ``ended``. ``run`` is to run as a task: it follows, and ends the streams."""

    def __init__(self, feed: Feed, ended: anyio.Event, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self.feed = feed
        self.filters = Filters()
        self.open: set[Stream] = set()
        self._slow_seconds = slow_seconds
        self._ended = ended
        self._made = 0
        self.routes: list[BaseRoute] = [Route("/live", self.live), Route("/live/log", self.log)]

    async def run(self) -> None:
        """Until ``ended``, and until all streams have said so. A browser that does not read is disconnected."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.feed.run)
            tasks.start_soon(self._drop_the_slow)
            await self._ended.wait()
            tasks.cancel_scope.cancel()
        self.feed.end()
        with anyio.move_on_after(END_SECONDS):
            while self.open:
                await next(iter(self.open)).over.wait()
        for stream in list(self.open):
            stream.hang_up()
        await self.feed.close()

    async def _drop_the_slow(self) -> None:
        """One watch for all: a limit on each write would cost more than the write."""
        while True:
            await anyio.sleep(self._slow_seconds / 4)
            late = time.monotonic() - self._slow_seconds
            for stream in [stream for stream in self.open if stream.writing < late]:
                stream.hang_up()

    async def live(self, request: Request) -> Response:
        """``GET /live?after=N&log=ID&topics=run.``: ``at``, ``changed``, ``daemon``, ``over``. Raises BadAddress."""
        return self._stream(request, None)

    async def log(self, request: Request) -> Response:
        """``GET /live/log?after=N&log=ID&topics=…&…``, with the filters of the log page: ``lines``, and as ``live``.

        Raises BadFilter.
        """
        return self._stream(request, query_of(request.query_params))

    def _stream(self, request: Request, asked: LogPageQuery | None) -> Response:
        """From behind the last message that the browser got; else from ``after``; else from now on."""
        self._made += 1
        given = request.query_params
        after = request.headers.get("last-event-id") or given.get("after", "")
        position = whole_number("after", after) if after else -1
        topics = [topic for topic in given.get("topics", "").split(",") if topic]
        retry = RETRY_MS[0] + self._made * 97 % (RETRY_MS[1] - RETRY_MS[0])
        wire = wire_for(",".join(request.headers.getlist("accept-encoding")))
        return Stream(self, wire, Topics(topics[:TOPICS_MAX]), asked, position, given.get("log", ""), retry)


class Stream(Response):
    """One connection. ``asked``: which lines of the log it is told, None for none; ``position``: the last one that it
    has been told of, -1 for the log's end as it is then; ``log_id``: of which log, "" when that is not said."""

    def __init__(
        self, streams: Streams, wire: Wire, topics: Topics, asked: LogPageQuery | None, position: int, log_id: str,
        retry_ms: int,
    ) -> None:
        super().__init__(headers=_HEADERS | ({"content-encoding": wire.coding} if wire.coding else {}))
        del MutableHeaders(raw=self.raw_headers)["content-length"]
        self._wire = wire
        self._streams = streams
        self._feed = streams.feed
        self._topics = topics
        self._asked = asked
        self._position = position
        self._log_id = log_id
        self._retry_ms = retry_ms
        self._scope = anyio.CancelScope()
        self._told_at = 0.0
        self._told_daemon: Liveness | None = None
        self._pending = bytearray()
        self._sent = 0
        self.writing = math.inf
        """Since when it has been waiting for what it sends to be read, on the steady clock."""
        self.over = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. Returns when the browser has gone, there is nothing more to tell, or nobody reads it."""
        self._send = send
        state = scope.setdefault("state", {})
        state["wire"] = self._wire  # for who ends it from outside: see the guard
        self._abort: Callable[[], None] | None = state.get("hang_up")
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            self._streams.open.add(self)
            try:
                with self._scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._until_gone, receive)
                        await self._until_over()
                        tasks.cancel_scope.cancel()
            finally:
                self._streams.open.discard(self)
                self.over.set()
        if not self._scope.cancel_called:
            await send({"type": "http.response.body", "body": self._wire.end(), "more_body": False})

    def hang_up(self) -> None:
        """End the connection, whatever is still to be sent on it. Nothing of a stream is lost by that: a browser that
        comes back is told the rest."""
        if self._abort is not None:
            self._abort()  # then receive() says that it has gone
        else:
            self._scope.cancel()

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._scope.cancel()

    async def _until_over(self) -> None:
        """Tell all there is, then what is new; at last why there is no more."""
        await self._feed.looked()
        if self._position < 0:
            self._position = self._feed.tail.position
        self._send_piece(piece(b"retry: %d\n\n" % self._retry_ms))
        try:
            if self._asked is None:
                word = await self._follow(None)
            else:
                async with self._streams.filters.use(self._asked) as lines:
                    word = await self._follow(lines)
        except (PmagentError, OSError) as error:
            word = _trouble(error)
        self._send_piece(word)  # behind what was intact, where the log is corrupt
        await self._flush()

    async def _follow(self, lines: Filter | None) -> Piece:
        """Tell until it cannot go on; the last word. Raises CorruptLog, NotFound, TooSlow, OSError."""
        feed = self._feed
        with feed.listening() as group:
            while True:
                if feed.ended:
                    return over("ended", "The console has stopped; this page goes on when it is back.")
                if feed.trouble is not None:
                    return _trouble(feed.trouble)
                if feed.tail.position < self._position or self._log_id not in ("", feed.log_id):
                    return over("replaced", f"This page is of another log; this one ends at {feed.tail.position}.")
                await self._catch_up(lines)
                await feed.news(self._position, group)

    async def _catch_up(self, lines: Filter | None) -> None:
        """Tell what is new, or that nothing is."""
        feed, topics, tail = self._feed, self._topics, self._feed.tail
        if (state := feed.daemon) is not None and state is not self._told_daemon:
            self._send_piece(daemon(state))
            self._told_daemon = state
        if lines is None and tail.position - self._position > SKIP_EVENTS:
            self._send_piece(topics.skip(tail.position))
            self._position = tail.position
        if self._position == tail.position:
            self._send_piece(at(tail.position, tail.time))
        while self._position < feed.tail.position and not feed.ended:
            run = feed.kept(self._position) or await feed.after(self._position)
            self._send_piece(topics.tell(run, self._position))
            if lines is not None:
                self._send_piece(await lines.lines(run, self._position))
            self._position = run.last
            if self._position >= feed.tail.position or time.monotonic() - self._told_at >= PACE_SECONDS:
                self._send_piece(at_end_of(run))
                self._told_at = time.monotonic()
            if len(self._pending) >= SEND_BYTES:
                await self._flush()
            if self._sent >= SEND_BYTES:
                self._sent = 0
                await anyio.lowlevel.checkpoint()  # what is at hand is taken without waiting; others want their turn
        await self._flush()

    def _send_piece(self, piece: Piece) -> None:
        """With the next write. Only its bytes are held until then: packed, they may be a thirtieth of the piece."""
        self._pending += self._wire.carry((piece,))
        self._sent += len(piece.plain)

    async def _flush(self) -> None:
        """Send what is to be told, as one write."""
        data, self._pending = bytes(self._pending), bytearray()
        if data:
            self.writing = time.monotonic()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
            self._wire.sent()
            self.writing = math.inf


def _trouble(error: PmagentError | OSError) -> Piece:
    """The log's fault, as the command line words it."""
    if isinstance(error, CorruptLog):
        return over("corrupt", f"{error.message} ({error.hint})")
    if isinstance(error, NotFound):
        return over("missing", error.message)
    if isinstance(error, PmagentError):
        return over("refused", f"{error.message} ({error.hint})")
    return over("unreadable", f"the log cannot be read: {error.strerror or error}")
