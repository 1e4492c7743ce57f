"""Where the proxy connects to, what a tunnel is, and how much a run may use."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator, Sequence

import anyio
import anyio.abc
import pytest

from pmagent.actors.sandbox.egress import proxy as proxies
from pmagent.actors.sandbox.egress import upstream as outsides
from pmagent.actors.sandbox.egress.rules import Caps, ContactRefused, rules
from pmagent.actors.sandbox.egress.upstream import Endpoint, HostUnreachable, Upstream
from pmagent.actors.sandbox.egress.usage import CONTACTS_MAX, Call, Ledger, LimitReached
from pmagent.contracts.orchestra import NetContact
from tests.support.proxied import BROKEN, NAME, Behave, Served, answering, everything, host, outside, proxied

GET = b"GET http://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
TUNNEL = b"CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def echo(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
    """Behaviour: everything back, and the end when the end comes."""
    while True:
        data = await stream.receive()
        heard += data
        await stream.send(data)


async def tunnel(proxy: Served, early: bytes = b"") -> anyio.abc.SocketStream:
    """An established tunnel."""
    stream = await proxy.connect()
    await stream.send(TUNNEL + early)
    got = b""
    while len(got) < len(ESTABLISHED):
        got += await stream.receive(len(ESTABLISHED) - len(got))
    assert got == ESTABLISHED
    return stream


def test_a_tunnel_carries_bytes_both_ways_until_both_sides_have_ended() -> None:
    async def behave(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
        async for data in stream:
            heard += data
        await stream.send(b"all " + bytes(heard))

    async def body() -> tuple[bytes, NetContact]:
        async with host(behave) as made, proxied(outside([made.endpoint])) as proxy:
            async with await tunnel(proxy, early=b"\x16early ") as stream:
                await stream.send(b"late")
                await stream.send_eof()
                got = await everything(stream)
            await proxy.idle()
            return got, proxy.ledger.contacts[0]

    got, contact = anyio.run(body)
    assert got == b"all \x16early late"
    assert (contact.host, contact.port, contact.address) == (NAME, 443, "127.0.0.1")
    assert (contact.verdict, contact.reason, contact.bytes_out, contact.bytes_in) == ("allowed", "", 11, 15)


def test_clients_of_http_1_0_get_their_tunnel_too() -> None:
    async def body() -> bytes:
        async with host(answering(b"bye", end=b"x")) as made, proxied(outside([made.endpoint])) as proxy:
            return await proxy.say(b"CONNECT api.example.org:443 HTTP/1.0\r\n\r\nx")

    assert anyio.run(body) == ESTABLISHED + b"bye"


async def test_a_side_that_breaks_off_ends_the_tunnel() -> None:
    async def behave(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
        heard += await stream.receive()
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    async with host(behave) as made, proxied(outside([made.endpoint])) as proxy:
        async with await tunnel(proxy, early=b"x") as stream:
            assert await everything(stream) in {b"", BROKEN}
        await proxy.idle()


def test_what_is_served_ends_with_the_proxy() -> None:
    async def body() -> bytes:
        async with host(echo) as made:
            async with proxied(outside([made.endpoint])) as proxy:
                stream = await tunnel(proxy, early=b"x")
                assert await stream.receive() == b"x"
            async with stream:
                got = await everything(stream)
            with pytest.raises(OSError, match=r"."):
                await anyio.connect_tcp("127.0.0.1", proxy.port)
            return got

    assert anyio.run(body) in {b"", BROKEN}


def test_a_name_is_resolved_once_and_the_address_that_was_looked_at_is_connected_to() -> None:
    """Rebinding: the second answer would be another address, and is never asked for."""
    asked: list[str] = []

    async def body() -> tuple[bytes, bytes, tuple[NetContact, ...]]:
        async with host(answering()) as good, host(answering()) as inside:
            world = outside([good.endpoint], [inside.endpoint], asked=asked, let=[good.endpoint])
            async with proxied(world) as proxy:
                first, second = await proxy.say(GET), await proxy.say(GET)
            assert (len(good.heard), len(inside.heard)) == (1, 0)
            return first, second, proxy.ledger.contacts

    first, second, contacts = anyio.run(body)
    assert first.endswith(b"hi")
    assert b"403" in second
    assert asked == ["api.example.org:80"] * 2
    assert [(each.verdict, each.address) for each in contacts] == [("allowed", "127.0.0.1"), ("refused", "")]
    assert contacts[1].reason == "api.example.org has an address that is private"


def test_one_bad_address_among_good_ones_spoils_them_all() -> None:
    async def body() -> tuple[bytes, int]:
        async with host(answering()) as made:
            world = outside([made.endpoint, ("10.0.0.1", 80)], let=[made.endpoint])
            async with proxied(world) as proxy:
                return await proxy.say(GET), len(made.heard)

    got, connections = anyio.run(body)
    assert b"403 Forbidden" in got
    assert connections == 0


@contextlib.contextmanager
def deaf() -> Iterator[Endpoint]:
    """Where nobody listens, and nobody begins to: the port is held."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()


def test_the_next_address_is_tried_when_one_takes_no_connection() -> None:
    async def body() -> tuple[bytes, str]:
        with deaf() as dead:
            async with host(answering()) as made, proxied(outside([dead, made.endpoint])) as proxy:
                return await proxy.say(GET), proxy.ledger.contacts[0].reason

    got, reason = anyio.run(body)
    assert got.endswith(b"hi")
    assert reason == ""


@pytest.mark.skipif(not outsides._ours("::1"), reason="this machine has no IPv6")
def test_hosts_of_ipv6_are_reached_as_well() -> None:
    async def body() -> tuple[bytes, str]:
        async with host(answering(), "::1") as made, proxied(outside([made.endpoint])) as proxy:
            return await proxy.say(GET), proxy.ledger.contacts[0].address

    got, address = anyio.run(body)
    assert got.endswith(b"hi")
    assert address == "::1"


def told(world: Upstream, request: bytes = GET, caps: Caps | None = None) -> tuple[bytes, NetContact]:
    """The answer to one request, and its contact."""

    async def body() -> tuple[bytes, NetContact]:
        async with proxied(world, caps) as proxy:
            got = await proxy.say(request)
            await proxy.idle()
            return got, proxy.ledger.contacts[0]

    return anyio.run(body)


def test_a_host_without_address_or_ear_is_told_and_was_allowed() -> None:
    async def unknown(name: str, port: int) -> Sequence[Endpoint]:
        raise socket.gaierror(socket.EAI_NONAME, f"{name}:{port}")

    async def silent(name: str, port: int) -> Sequence[Endpoint]:
        del name, port
        await anyio.sleep_forever()
        raise AssertionError

    with deaf() as dead:
        for world, status, reason in (
            (outside([dead]), b"502", "api.example.org takes no connection"),
            (outside([]), b"502", "api.example.org has no address"),
            (Upstream(unknown), b"502", "api.example.org has no address"),
            (Upstream(silent), b"504", "api.example.org: no name server answered in 0.05 s"),
        ):
            for request in (GET, TUNNEL):
                got, contact = told(world, request, Caps(connect_seconds=0.05))
                assert got.split(b" ")[1] == status
                assert (contact.verdict, contact.reason) == ("allowed", reason)


def test_the_real_world_refuses_what_is_inside() -> None:
    """The defaults, with names that lead to this machine."""

    async def here(name: str, port: int) -> Sequence[Endpoint]:
        del name
        return [("127.0.0.1", port)]

    got, contact = told(Upstream(ask=here))
    assert b"403 Forbidden" in got
    assert contact.reason == "api.example.org has an address that is loopback"


def test_the_resolver_of_the_machine_is_asked_for_the_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    async def getaddrinfo(name: str, port: int, *, type: int) -> list[object]:
        asked.append(name)
        return [(2, type, 6, "", ("192.0.2.1", port)), (10, type, 6, "", ("2001:db8::1", port, 0, 0))]

    monkeypatch.setattr(anyio, "getaddrinfo", getaddrinfo)
    assert anyio.run(outsides.ask, "api.example.org", 443) == [("192.0.2.1", 443), ("2001:db8::1", 443)]
    assert asked == ["api.example.org."], "without the dot, search domains of the machine would be tried"


def test_addresses_of_this_machine_are_no_public_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outsides, "refusal", lambda _: "")
    assert outsides.no_public_host("127.0.0.1", 443) == "this machine's own"
    assert outsides.no_public_host("192.0.2.1", 443) == ""
    assert outsides.no_public_host("2001:db8::1", 443) == ""
    assert outsides.no_public_host("no address", 443) == "this machine's own", "in doubt it is"


def test_an_address_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(address: str, port: int) -> object:
        await anyio.sleep_forever()
        raise AssertionError((address, port))

    async def body() -> None:
        await outsides.connect(NAME, [("192.0.2.1", 1), ("192.0.2.2", 1)], 0.01)

    monkeypatch.setattr(anyio, "connect_tcp", connect)
    with pytest.raises(HostUnreachable, match="takes no connection"):
        anyio.run(body)


def cut(caps: Caps, behave: Behave) -> tuple[int, int, NetContact]:
    """How many bytes a tool got that sends a million through a tunnel, and how many the host."""

    async def body() -> tuple[int, int, NetContact]:
        async with host(behave) as made, proxied(outside([made.endpoint]), caps) as proxy:
            async with await tunnel(proxy) as stream, anyio.create_task_group() as group:
                group.start_soon(send, stream, b"x" * 10**6)
                got = (await everything(stream)).removesuffix(BROKEN)
                group.cancel_scope.cancel()
            await proxy.idle()
            return len(got), len(made.heard[0]), proxy.ledger.contacts[0]

    return anyio.run(body)


async def send(stream: anyio.abc.SocketStream, data: bytes) -> None:
    """As much as is taken."""
    with contextlib.suppress(anyio.BrokenResourceError):
        await stream.send(data)


def test_a_run_sends_and_gets_so_many_bytes_and_no_more() -> None:
    _, heard, contact = cut(Caps(bytes_out=200_000), answering(end=b"never"))
    assert heard <= 200_000
    assert contact.reason == "cut: more than 200000 bytes were to go out in this run"
    got, _, contact = cut(Caps(bytes_in=200_000), echo)
    assert got <= 200_000
    assert contact.reason == "cut: more than 200000 bytes came in in this run"
    assert contact.verdict == "allowed"


def test_a_plain_answer_that_is_too_long_is_cut() -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000

    async def body() -> tuple[bytes, str]:
        async with host(answering(long)) as made, proxied(outside([made.endpoint]), Caps(bytes_in=100_000)) as proxy:
            got = await proxy.say(GET)
            await proxy.idle()
            return got, proxy.ledger.contacts[0].reason

    got, reason = anyio.run(body)
    assert got.endswith(BROKEN)
    assert len(got) < 200_000
    assert reason == "cut: more than 100000 bytes came in in this run"


def test_a_connection_lasts_so_long_and_no_longer() -> None:
    async def body() -> tuple[bytes, NetContact]:
        async with host(echo) as made, proxied(outside([made.endpoint]), Caps(seconds=1)) as proxy:
            async with await tunnel(proxy, early=b"x") as stream:
                got = await everything(stream)
            await proxy.idle()
            return got, proxy.ledger.contacts[0]

    got, contact = anyio.run(body)
    assert got.startswith(b"x")
    assert (contact.verdict, contact.reason, contact.bytes_out) == ("allowed", "cut after 1 s", 1)


def test_so_many_connections_at_once_and_the_next_waits() -> None:
    async def body() -> list[int]:
        served: list[int] = []
        async with host(echo) as made, proxied(outside([made.endpoint]), Caps(at_once=2)) as proxy:
            first, second = await tunnel(proxy, early=b"1"), await tunnel(proxy, early=b"2")
            async with anyio.create_task_group() as group:

                async def third() -> None:
                    async with await tunnel(proxy, early=b"3"):
                        served.append(len(made.heard))

                group.start_soon(third)
                for _ in range(50):  # long enough for the third to be served, were there room
                    assert len(await first.receive()) == 1
                    await first.send(b"1")
                assert served == []
                assert len(proxy.ledger.contacts) == 2
                await first.aclose()
            await second.aclose()
        return served

    assert anyio.run(body) == [3]


def test_so_many_connections_in_all() -> None:
    async def body() -> tuple[list[bytes], list[NetContact]]:
        async with host(answering()) as made, proxied(outside([made.endpoint]), Caps(connections=2)) as proxy:
            got = [await proxy.say(GET) for _ in range(4)]
            assert len(made.heard) == 2
            return got, list(proxy.ledger.contacts)

    got, contacts = anyio.run(body)
    assert [b"403 Forbidden" in each for each in got] == [False, False, True, True]
    assert [each.verdict for each in contacts] == ["allowed", "allowed", "refused", "refused"]
    assert contacts[3].reason == "this run has made its 2 connections"


def test_contacts_are_kept_in_order_and_counted_beyond() -> None:
    ledger = Ledger(Caps())
    for number in range(CONTACTS_MAX + 7):
        call = Call()
        ledger.note(call)
        call.port = number
    assert [each.port for each in ledger.contacts] == list(range(CONTACTS_MAX))
    assert ledger.dropped == 7


def test_bytes_of_all_connections_count_together_and_used_up_is_used_up() -> None:
    ledger = Ledger(Caps(bytes_out=10, bytes_in=10))
    one, other = Call(), Call()
    ledger.sent(one, 6)
    ledger.sent(other, 4)
    with pytest.raises(LimitReached):
        ledger.sent(one, 1)
    assert (one.bytes_out, other.bytes_out) == (6, 4)
    with pytest.raises(ContactRefused, match="as many bytes"):
        ledger.admit()
    ledger = Ledger(Caps(bytes_in=10))
    ledger.received(one, 10)
    with pytest.raises(LimitReached):
        ledger.received(one, 1)
    with pytest.raises(ContactRefused, match="as many bytes"):
        ledger.admit()


def test_a_machine_without_room_for_one_more_connection_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "_FULL_SECONDS", 0)
    troubles = [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE]

    class Listener(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            if troubles:
                raise OSError(troubles.pop(), "no room")
            return super().accept()

    async def body() -> bytes:
        with Listener() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            async with await anyio.connect_tcp("127.0.0.1", listener.getsockname()[1]) as stream:
                with await proxies._accepted(listener) as accepted:
                    accepted.send(b"welcome")
                return await everything(stream)

    assert anyio.run(body) == b"welcome"
    assert troubles == []


async def test_a_connection_that_is_gone_before_it_is_taken_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as group:
            group.start_soon(proxies.Proxy(rules((NAME,), None), Upstream(), Caps()).serve, listener)
            await anyio.wait_all_tasks_blocked()
            assert not listener.getblocking()
            group.cancel_scope.cancel()


def test_any_other_trouble_with_the_listener_is_no_secret() -> None:
    async def body() -> None:
        with socket.socket() as deaf:
            deaf.settimeout(0)
            deaf.bind(("127.0.0.1", 0))
            await proxies._accepted(deaf)

    with pytest.raises(OSError, match="Invalid argument"):
        anyio.run(body)
