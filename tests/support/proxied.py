"""A proxy over this machine's loopback, and hosts behind it that do as they are told; for tests."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from pmagent.actors.sandbox.egress.proxy import Proxy
from pmagent.actors.sandbox.egress.rules import Caps, rules
from pmagent.actors.sandbox.egress.upstream import Endpoint, Upstream

NAME = "api.example.org"
"""The one host that the proxies here allow."""

TRACE = ("X-Trace", "run-7")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

BROKEN = b" [broken off]"
"""Stands at the end of what came on a connection that was reset."""

Behave = Callable[[anyio.abc.SocketStream, bytearray], Awaitable[None]]
"""A host's work on one connection; it adds what it hears to the second."""


class Host:
    """A server on loopback. ``heard`` holds what came on each connection, in the order in which they came."""

    def __init__(self, address: str) -> None:
        self.heard: list[bytearray] = []
        self.address = address
        self.port = 0

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return (self.address, self.port)


@asynccontextmanager
async def host(behave: Behave, address: str = "127.0.0.1") -> AsyncIterator[Host]:
    """A host for whose connections ``behave`` is called; each is closed afterwards."""
    made = Host(address)

    async def serve(stream: anyio.abc.SocketStream) -> None:
        heard = bytearray()
        made.heard.append(heard)
        async with stream:
            try:
                await behave(stream, heard)
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return  # the other side had enough

    async with await anyio.create_tcp_listener(local_host=address) as listener, anyio.create_task_group() as group:
        made.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        group.start_soon(listener.serve, serve)
        yield made
        group.cancel_scope.cancel()


def answering(answer: bytes = HEAD, end: bytes = b"\r\n\r\n") -> Behave:
    """Behaviour: read until ``end``, by default a head, answer, end."""

    async def behave(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
        while end not in heard:
            heard += await stream.receive()
        await stream.send(answer)

    return behave


def outside(*answers: Sequence[Endpoint], asked: list[str] | None = None, let: Sequence[Endpoint] = ()) -> Upstream:
    """A world whose resolver gives these answers, one after the other, the last for ever; and where exactly the
    endpoints ``let``, or those of the answers, count as public. ``asked`` gets the names that are resolved."""
    left = list(answers)
    public = {*let} or {endpoint for answer in answers for endpoint in answer}

    async def ask(name: str, port: int) -> Sequence[Endpoint]:
        if asked is not None:
            asked.append(f"{name}:{port}")
        return left.pop(0) if len(left) > 1 else left[0]

    return Upstream(ask, lambda address, port: "" if (address, port) in public else "private")


class Served:
    """A running proxy, as a tool sees it."""

    def __init__(self, proxy: Proxy, port: int) -> None:
        self.ledger = proxy.ledger
        self.port = port
        self._proxy = proxy

    async def idle(self) -> None:
        """Wait until it serves nobody. It takes nobody any more then."""
        for _ in range(self._proxy._caps.at_once):
            await self._proxy._slots.acquire()

    async def connect(self) -> anyio.abc.SocketStream:
        """A connection to it."""
        return await anyio.connect_tcp("127.0.0.1", self.port)

    async def say(self, request: bytes) -> bytes:
        """Send ``request`` and read until the end, or the break."""
        async with await self.connect() as stream:
            await stream.send(request)
            return await everything(stream)


async def everything(stream: anyio.abc.SocketStream) -> bytes:
    """All that comes."""
    got = bytearray()
    try:
        while True:
            got += await stream.receive()
    except anyio.EndOfStream:
        return bytes(got)
    except anyio.BrokenResourceError:
        return bytes(got) + BROKEN


@asynccontextmanager
async def proxied(world: Upstream, caps: Caps | None = None, names: Sequence[str] = (NAME,)) -> AsyncIterator[Served]:
    """A proxy that serves on a port of loopback until the block is left, in 20 s at most."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(rules(names, TRACE), world, caps or Caps())
    with listener, anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            group.start_soon(proxy.serve, listener)
            yield Served(proxy, listener.getsockname()[1])
            group.cancel_scope.cancel()
