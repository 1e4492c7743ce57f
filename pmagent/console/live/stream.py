"""The two streams of the console, ``/live`` and ``/live/log``: each connection reads the log at its own pace.

A connection that does not read costs what uvicorn buffers for it (64 KiB and one message more), and is hung up on after
``SLOW_SECONDS``. When the server stops, the streams end by themselves, before uvicorn is told to wait for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import anyio
import anyio.lowlevel
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from events.errors import CorruptLog, NotFound, PmagentError
from events.event import StoredEvent
from pmagent.console.live.feed import PACE_SECONDS, Feed
from pmagent.console.live.filters import number, wanted
from pmagent.console.live.telling import Changes, Lines, Teller, at, changed, over

HEARTBEAT_SECONDS: Final = 15.0
"""While nothing happens, that is said so often: a page that hears nothing says that it is stale."""
SLOW_SECONDS: Final = 60.0
"""So long a connection may leave unread what was sent."""
END_SECONDS: Final = 1.0
"""So long the streams may take to say their last word when the server stops."""
SKIP_EVENTS: Final = 10_000
"""A page that is so far behind is stale, whatever has happened."""
TOPICS_MAX: Final = 32
RETRY_MS: Final = (500, 1500)
"""A browser comes back after so many milliseconds; not all of them at once."""

_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}


class Streams:
    """The routes over ``feed``, until ``ended``. ``run`` is to run as a task: it follows, and ends the streams."""

    def __init__(self, feed: Feed, ended: anyio.Event, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self._feed = feed
        self._ended = ended
        self._slow_seconds = slow_seconds
        self._made = 0
        self._open: set[Stream] = set()
        self.routes: list[BaseRoute] = [Route("/live", self.live), Route("/live/log", self.log)]

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    async def run(self) -> None:
        """Until ``ended``, and until all streams have said so. Who does not read it is hung up on."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._feed.run)
            await self._ended.wait()
            tasks.cancel_scope.cancel()
        self._feed.end()
        with anyio.move_on_after(END_SECONDS):
            while self._open:
                await next(iter(self._open)).over.wait()
        for stream in list(self._open):
            stream.hang_up()

    async def live(self, request: Request) -> Response:
        """``GET /live?after=N&topics=run.,task.``: ``at``, ``changed``, ``over``. Raises BadFilter."""
        return self._stream(request, _changes(request))

    async def log(self, request: Request) -> Response:
        """``GET /live/log?after=N&topics=…&…``, with the filters of the log page: ``lines``, and as ``live``.

        Raises BadFilter, BadTime.
        """
        return self._stream(request, Lines(wanted(request.query_params), _changes(request)))

    def _stream(self, request: Request, teller: Teller) -> Response:
        """From behind the last message that the browser got; else from ``after``; else from now on."""
        self._made += 1
        retry = RETRY_MS[0] + self._made * 97 % (RETRY_MS[1] - RETRY_MS[0])
        got = request.headers.get("last-event-id") or request.query_params.get("after", "")
        return Stream(self._feed, teller, number("after", got, -1), retry, self._open, self._slow_seconds)


class Stream(Response):
    """One connection. ``position`` is the last one that it has been told of; -1: the log's end, as it is then."""

    def __init__(
        self, feed: Feed, teller: Teller, position: int, retry_ms: int, among: set[Stream], slow_seconds: float
    ) -> None:
        super().__init__(headers=_HEADERS)
        del MutableHeaders(raw=self.raw_headers)["content-length"]
        self._feed = feed
        self._teller = teller
        self._position = position
        self._retry_ms = retry_ms
        self._among = among
        self._slow_seconds = slow_seconds
        self._scope = anyio.CancelScope()
        self._told_at = 0.0
        self.over = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. Returns when the browser has gone, there is nothing more to tell, or nobody reads it."""
        self._send = send
        state = scope.get("state", {})
        self._abort: Callable[[], None] | None = state.get("hang_up")
        self._still_in: Callable[[], bool] = state.get("still_in", _always)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            self._among.add(self)
            try:
                with self._scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._until_gone, receive)
                        await self._until_over()
                        tasks.cancel_scope.cancel()
            finally:
                self._among.discard(self)
                self.over.set()
        if not self._scope.cancel_called:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

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
        """Tell all there is, then what is new."""
        feed = self._feed
        with feed.listening():
            feed.look()
            if self._position < 0:
                self._position = feed.tail.position
            await self._write(b"retry: %d\n\n" % self._retry_ms)
            while (word := self._last_word()) is None:
                try:
                    done = await self._catch_up()
                except (PmagentError, OSError) as error:
                    word = _trouble(error)
                    break
                if done:
                    word = over("until", "Nothing later is asked for.")
                    break
                with anyio.move_on_after(HEARTBEAT_SECONDS):
                    await feed.news(self._position)
            await self._write(word)

    def _last_word(self) -> bytes | None:
        """Why it cannot go on; None while it can."""
        feed = self._feed
        if feed.ended:
            return over("ended", "The console has stopped; this page goes on when it is back.")
        if feed.trouble is not None:
            return _trouble(feed.trouble)
        if feed.tail.position < self._position:
            return over("replaced", f"The log ends at {feed.tail.position}: this page is of another. Load it again.")
        return None if self._still_in() else over("signed_out", "Your session has ended. Sign in again.")

    async def _catch_up(self) -> bool:
        """Tell what is new, or that nothing is; whether nothing behind it is wanted."""
        feed, teller = self._feed, self._teller
        tail = feed.tail
        skipped = b""
        if teller.skips and tail.position - self._position > SKIP_EVENTS:
            skipped = changed(tail.position, [])
        if skipped or self._position == tail.position:
            self._position = tail.position
            await self._write(skipped + at(tail.position, tail.time))
        while self._position < feed.tail.position and not feed.ended:
            run = await feed.after(self._position)
            told = teller.tell(run, self._position)
            self._position = run.last
            done = teller.wanted is not None and teller.wanted.beyond(run.events[-1])
            if done or self._position >= feed.tail.position or time.monotonic() - self._told_at >= PACE_SECONDS:
                told += run.made("at", _at)
                self._told_at = time.monotonic()
            if told:
                await self._write(told)
            if done:
                return True
            await anyio.lowlevel.checkpoint()  # what is at hand is taken without waiting; others want their turn
        return False

    async def _write(self, data: bytes) -> None:
        """Send; when nobody reads what was sent before, hang up."""
        with anyio.move_on_after(self._slow_seconds) as patience:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
        if patience.cancelled_caught:
            self.hang_up()
            await anyio.sleep_forever()  # until the end of the connection has come through


def _changes(request: Request) -> Changes:
    topics = [topic for topic in request.query_params.get("topics", "").split(",") if topic]
    return Changes(topics[:TOPICS_MAX])


def _at(events: Sequence[StoredEvent]) -> bytes:
    return at(events[-1].position, events[-1].time)


def _trouble(error: PmagentError | OSError) -> bytes:
    """What is wrong with the log, as the command line says it."""
    if isinstance(error, CorruptLog):
        return over("corrupt", f"{error.message} ({error.hint})")
    if isinstance(error, NotFound):
        return over("missing", error.message)
    return over("unreadable", f"the log cannot be read: {getattr(error, 'strerror', None) or error}")


def _always() -> bool:
    return True
