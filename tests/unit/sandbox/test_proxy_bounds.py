"""How long a head may be, however it comes; and who gives way when all places of a proxy are taken."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import anyio.abc

from pmagent.actors.sandbox.egress.rules import Caps
from tests.support.cases import each
from tests.support.proxied import BROKEN, HEAD, Served, answering, everything, host, outside, proxied

GET = b"GET http://api.example.org/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
TUNNEL = b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
MOST = Caps().head_bytes
FOREVER = 100_000.0


def padded(head: bytes, length: int) -> bytes:
    """``head`` with a header more that makes it so long."""
    return head[:-2] + b"X: " + b"y" * (length - len(head) - 5) + b"\r\n\r\n"


def many(head: bytes, length: int) -> bytes:
    """``head`` with many short headers more, at least so long together."""
    return head[:-2] + b"".join(b"X-%d: y\r\n" % number for number in range(length // 9)) + b"\r\n"


def said(*segments: bytes) -> tuple[bytes, list[bytes]]:
    """Say this in so many segments at least: the answer, and what the host hears."""

    async def body() -> tuple[bytes, list[bytes]]:
        async with (
            host(answering()) as made, proxied(outside([made.endpoint])) as proxy, await proxy.connect() as stream,
        ):
            for segment in segments:
                await stream.send(segment)
                await anyio.wait_all_tasks_blocked()
            return await everything(stream), [bytes(heard) for heard in made.heard]

    return anyio.run(body)


@each("head", [GET, TUNNEL])
@each("made", [padded, many])
def test_a_head_is_bounded_in_one_segment_and_in_many(head: bytes, made: object) -> None:
    assert callable(made)
    whole = made(head, MOST + 8 * 1024)
    for segments in ([whole], [whole[:20_000], whole[20_000:]], [whole[:-1], whole[-1:]], [whole[:99], whole[99:]]):
        got, heard = said(*segments)
        assert got.startswith(b"HTTP/1.1 431 "), got
        assert heard == []


def test_the_bound_is_exact() -> None:
    got, heard = said(padded(GET, MOST))
    assert (got.endswith(b"hi"), len(heard)) == (True, 1)
    got, heard = said(padded(GET, MOST + 1))
    assert (got.split(b" ")[1], heard) == (b"431", [])


@each("second", [GET, padded(GET, 40 * 1024), many(TUNNEL, 40 * 1024)])
def test_a_second_head_in_the_same_segment_is_neither_counted_nor_read(second: bytes) -> None:
    got, heard = said(GET + second)
    assert got.count(b"HTTP/1.1") == 1
    assert got.endswith(b"hi")
    assert [each.count(b"HTTP/1.1") for each in heard] == [1]


def test_the_head_of_an_answer_is_bounded_too() -> None:
    async def got(answer: bytes) -> bytes:
        async with host(answering(answer)) as made, proxied(outside([made.endpoint])) as proxy:
            return await proxy.say(GET)

    early = padded(b"HTTP/1.1 103 Early Hints\r\n\r\n", MOST)
    assert anyio.run(got, padded(HEAD[:-2], MOST) + b"hi").endswith(b"hi")
    assert anyio.run(got, early + early + HEAD).endswith(b"hi")
    for long in (padded(HEAD[:-2], MOST + 1) + b"hi", many(HEAD[:-2], 40 * 1024) + b"hi"):
        assert anyio.run(got, long).startswith(b"HTTP/1.1 502 ")


async def silent(proxy: Served) -> anyio.abc.SocketStream:
    """A connection that says nothing."""
    return await proxy.connect()


async def half(proxy: Served) -> anyio.abc.SocketStream:
    """A connection with half a head."""
    stream = await proxy.connect()
    await stream.send(GET[:40])
    return stream


async def answered(proxy: Served) -> anyio.abc.SocketStream:
    """A connection that has its answer, and stays."""
    stream = await proxy.connect()
    await stream.send(GET)
    await stream.receive()
    return stream


async def refused(proxy: Served) -> anyio.abc.SocketStream:
    """A connection that was told no, and stays."""
    stream = await proxy.connect()
    await stream.send(GET.replace(b"api.", b"other."))
    await stream.receive()
    return stream


async def tunnel(proxy: Served) -> anyio.abc.SocketStream:
    """A tunnel that is open, in which nothing is said."""
    stream = await proxy.connect()
    await stream.send(TUNNEL)
    assert await stream.receive() == ESTABLISHED
    return stream


@each("kind", [silent, half, answered, refused])
async def test_idle_connections_give_way_when_all_places_are_taken(kind: object) -> None:
    assert callable(kind)
    caps = Caps(head_seconds=FOREVER, seconds=FOREVER)
    async with AsyncExitStack() as held, host(answering()) as made, proxied(outside([made.endpoint]), caps) as proxy:
        for _ in range(caps.at_once):
            await held.enter_async_context(await kind(proxy))
        for _ in range(5):
            assert (await proxy.say(GET)).endswith(b"hi")


def test_the_oldest_gives_way_first_and_what_is_in_use_never_does() -> None:
    async def echo(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
        async for data in stream:
            heard += data
            await stream.send(data)

    async def body() -> list[tuple[str, str]]:
        caps = Caps(at_once=4, idle_seconds=0, head_seconds=FOREVER)
        async with host(echo) as made, proxied(outside([made.endpoint]), caps) as proxy:
            used, first, second = await tunnel(proxy), await silent(proxy), await half(proxy)
            third = await silent(proxy)
            await anyio.wait_all_tasks_blocked()
            also = await tunnel(proxy)
            assert await everything(first) in {b"", BROKEN}
            for stream in (used, also):
                await stream.send(b"still there")
                assert await stream.receive() == b"still there"
            await second.send(GET[40:])
            await third.send(GET)
            for stream in (second, third):  # what the host sends back is no answer
                assert (await everything(stream)).startswith(b"HTTP/1.1 502 ")
            for stream in (used, also, first, second, third):
                await stream.aclose()
        return [(each.verdict, each.reason) for each in proxy.ledger.contacts]

    told = anyio.run(body)
    assert told.count(("refused", "no request came before its place was needed")) == 1
    assert len(told) == 5, "both that stayed were still listened to"


def test_nobody_gives_way_while_there_is_room_nor_before_the_time() -> None:
    async def body(caps: Caps, first: int) -> None:
        async with (
            AsyncExitStack() as held, host(answering()) as made, proxied(outside([made.endpoint]), caps) as proxy,
        ):
            idle = [await held.enter_async_context(await silent(proxy)) for _ in range(first)]
            next_one = await held.enter_async_context(await proxy.connect())
            await next_one.send(GET)
            if first < caps.at_once:
                assert (await everything(next_one)).endswith(b"hi")
            for stream in idle:
                await stream.send(GET)
                assert (await everything(stream)).endswith(b"hi")
                await stream.aclose()
            if first == caps.at_once:
                assert (await everything(next_one)).endswith(b"hi")

    anyio.run(body, Caps(at_once=3, idle_seconds=0, head_seconds=FOREVER), 2)
    anyio.run(body, Caps(at_once=2, idle_seconds=FOREVER, head_seconds=FOREVER), 2)
