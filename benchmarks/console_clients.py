"""Many browsers in one process, as far as the console can tell, for ``console_load``:
``python -m benchmarks.console_clients idle|busy PORT COOKIE...``. ``idle``: they get what nobody else wants of the
processors.

Each line of its input is JSON: ``{"open": COUNT, "after": POSITION, "read": BOOL}`` connects so many to ``/live/log``,
each of which checks that it is told every event behind POSITION, once and in order (``read`` false: nothing is read of
it, ever); ``{"until": POSITION}`` answers when all have been told so far, with how late each event came to some of
them, in seconds; ``{"close": true}`` leaves.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import sys
import time
import zlib
from datetime import datetime
from functools import partial

from pmagent.console.priority import lower_priority

_ROWS = re.compile(rb'<tr id=\\"e(\d+)\\".+?datetime=\\"([^\\]+)\\"')
_AT = re.compile(rb"event: at\nid: (\d+)\n")
LATE_OF = 10
"""Of one in so many browsers it is told how late each event came to it."""


class Follower(asyncio.Protocol):
    """One connection. Raises by its future what is wrong with what it is told."""

    def __init__(self, request: bytes, after: int, browsers: Browsers, sampled: bool) -> None:
        self._request = request
        self._browsers = browsers
        self._sampled = sampled
        self._got: list[tuple[float, bytes]] = []
        self._raw = b""
        self._left = 0
        self._message = b""
        self._packed = zlib.decompressobj()
        self._head = True
        self.position = after
        self.heard = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport), "it is TCP"
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol. The data is looked at when somebody waits for it: while events are appended
        browsers only read."""
        self._got.append((time.time(), data))
        if self._browsers.waiting:
            self.look()

    def look(self) -> None:
        """Look at what has come."""
        got, self._got = self._got, []
        for came, data in got:
            self._look(came, data)

    def _look(self, came: float, data: bytes) -> None:
        """Chunks (RFC 9112, 7.1) of messages, packed (RFC 1950)."""
        self._raw += data
        if self._head:
            head, found, rest = self._raw.partition(b"\r\n\r\n")
            if not found:
                return
            assert head.startswith(b"HTTP/1.1 200 "), head
            self._head, self._raw = False, rest
        while self._raw:
            if not self._left:
                size, found, rest = self._raw.partition(b"\r\n")
                if not found:
                    return
                self._left, self._raw = int(size, 16) + 2, rest
            taken, self._raw = self._raw[: self._left], self._raw[self._left :]
            self._left -= len(taken)
            body = taken if self._left > 1 else taken[: len(taken) - (2 - self._left)]
            self._message += self._packed.decompress(body)
        while b"\n\n" in self._message:
            message, _, self._message = self._message.partition(b"\n\n")
            self._told(came, message)

    def _told(self, came: float, message: bytes) -> None:
        at = _AT.match(message)
        if at is not None:
            told = int(at[1])
            if told != self.position:
                self._browsers.fail(f"the log is at {told}, and {self.position} was told last")
            self.heard = True
            self._browsers.told()
            return
        for found, time_of in _ROWS.findall(message):
            self.position += 1
            if int(found) != self.position:
                self._browsers.fail(f"event {int(found)} was told instead of {self.position}")
            if self._sampled:
                self._browsers.late.append(came - datetime.fromisoformat(time_of.decode()).timestamp())

    def connection_lost(self, _error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._browsers.lost(self)


class Browsers:
    """All of them."""

    def __init__(self, port: int, cookies: list[str]) -> None:
        self._port = port
        self._cookies = cookies
        self._open: list[Follower] = []
        self._idle: list[socket.socket] = []
        self._news = asyncio.Event()
        self.late: list[float] = []
        self._wrong = ""
        self.waiting = False

    async def open(self, count: int, after: int, read: bool) -> None:
        """Connect."""
        loop = asyncio.get_running_loop()
        for n in range(count):
            request = self._request(self._cookies[n % len(self._cookies)], after)
            if read:
                made = partial(Follower, request, after, self, n % LATE_OF == 0)
                _, follower = await loop.create_connection(made, "127.0.0.1", self._port)
                self._open.append(follower)
            else:
                deaf = socket.create_connection(("127.0.0.1", self._port))
                deaf.sendall(request)
                self._idle.append(deaf)
        await self.until(after)
        self.late.clear()  # of what had happened before

    def _request(self, cookie: str, after: int) -> bytes:
        return (
            f"GET /live/log?after={after} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {cookie}\r\n"
            "Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n".encode()
        )

    async def until(self, position: int) -> None:
        """All have been told so far."""
        for one in self._open:
            one.look()
            await asyncio.sleep(0)  # when what comes meanwhile has come is to be known
        self.waiting = True
        for one in self._open:
            one.look()
        while not (self._wrong or all(one.heard and one.position >= position for one in self._open)):
            self._news.clear()
            await self._news.wait()
        self.waiting = False

    def told(self) -> None:
        """A follower has caught up."""
        self._news.set()

    def fail(self, why: str) -> None:
        """A follower was told what it must not be."""
        self._wrong = self._wrong or why
        self._news.set()

    def lost(self, follower: Follower) -> None:
        """A connection has ended; whether that is right is seen by what was told."""
        if follower in self._open:
            self.fail(f"a connection ended at {follower.position}")

    def close(self) -> None:
        """Leave."""
        followers, self._open = self._open, []
        for follower in followers:
            follower.transport.abort()
        for deaf in self._idle:
            deaf.close()
        self._idle = []

    def answer(self) -> dict[str, object]:
        """The answer to a command."""
        late, self.late = self.late, []
        return {"wrong": self._wrong, "late": late, "cpu": time.process_time()}


async def _obey(browsers: Browsers) -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        asked = json.loads(line)
        if "open" in asked:
            await browsers.open(asked["open"], asked["after"], asked["read"])
        elif "until" in asked:
            await browsers.until(asked["until"])
        else:
            browsers.close()
        sys.stdout.write(json.dumps(browsers.answer()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "idle":
        lower_priority(0, os.SCHED_IDLE)  # what reads is not what is measured
    asyncio.run(_obey(Browsers(int(sys.argv[2]), sys.argv[3:])))
