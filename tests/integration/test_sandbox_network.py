"""The network of a tool: nothing but its own proxy, which nobody else can reach; tried for real, inside."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc
import msgspec
import pytest

from pmagent.actors.sandbox.egress.gateway import Gateway
from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Outcome
from tests.support.networked import INSIDE, allowed, echo, ran, sockets
from tests.support.proxied import BROKEN, HEAD, NAME, answering, everything, host, outside
from tests.support.sandboxes import needs_sandbox, spec_for

pytestmark = needs_sandbox


def test_plain_http_goes_to_an_allowed_host_and_carries_the_trace_id(tmp_path: Path) -> None:
    lines, outcome, made = ran(tmp_path, f'print(asked("http://{NAME}/x?y"))')
    assert lines == ["hi"]
    assert b"\r\nx-trace: run-7\r\n" in made.heard[0]
    assert made.heard[0].startswith(b"GET /x?y HTTP/1.1\r\nhost: api.example.org\r\n")
    contact = outcome.contacts[0]
    assert (contact.host, contact.port, contact.address, contact.verdict) == (NAME, 80, "127.0.0.1", "allowed")
    assert contact.bytes_out == len(made.heard[0])
    assert contact.bytes_in > 0
    assert outcome.contacts_dropped == 0


def test_a_tunnel_goes_to_an_allowed_host(tmp_path: Path) -> None:
    lines, outcome, _ = ran(tmp_path, f'print(tunnelled("{NAME}"))', echo)
    assert lines == ["hello"]
    contact = outcome.contacts[0]
    assert (contact.port, contact.verdict, contact.bytes_out, contact.bytes_in) == (443, "allowed", 5, 5)


def test_what_is_not_allowed_gets_a_403_with_the_reason_and_no_connection(tmp_path: Path) -> None:
    code = """
for url in ("http://other.example/", "http://api.example.org.other.example/", "http://127.0.0.1/", "http://[::1]/",
            "http://2130706433/", "http://0x7f.1/", "http://169.254.169.254/latest/meta-data/", "http://localhost/",
            "http://api.example.org:8080/", "http://api.example.org:443/"):
    print(asked(url))
for name, port in (("other.example", 443), ("10.0.0.1", 443), ("[fd00:ec2::254]", 443), ("api.example.org", 22),
                   ("api.example.org", 80)):
    print(tunnelled(name, port))
"""
    lines, outcome, made = ran(tmp_path, code)
    assert made.heard == []
    assert lines == [
        "403 other.example is not allowed", "403 api.example.org.other.example is not allowed",
        "403 127.0.0.1 is an IP address", "403 [::1] is an IP address", "403 2130706433 is an IP address",
        "403 0x7f.1 is an IP address", "403 169.254.169.254 is an IP address", "403 localhost is not allowed",
        "403 port 8080 is not allowed", "403 port 443 is not allowed", *["Tunnel connection failed: 403 Forbidden"] * 5,
    ]
    assert {contact.verdict for contact in outcome.contacts} == {"refused"}
    assert [contact.reason for contact in outcome.contacts][10:] == [
        "other.example is not allowed", "10.0.0.1 is an IP address", "[fd00:ec2::254] is an IP address",
        "port 22 is not allowed", "port 80 is not allowed",
    ]


def test_an_allowed_name_does_not_lead_inside_nor_change_its_mind(tmp_path: Path) -> None:
    """CONNECT and plain HTTP to names that resolve to somebody's inside; and to one that does so the second time."""
    code = f'print(asked("http://{NAME}/"), asked("http://{NAME}/"), tunnelled("{NAME}"), sep="\\n")'

    async def body() -> tuple[Outcome, int, int]:
        async with host(answering()) as good, host(answering()) as inside:
            world = outside([good.endpoint], [inside.endpoint], let=[good.endpoint])
            outcome = await allowed(tmp_path / "artifacts", code, world)
            return outcome, len(good.heard), len(inside.heard)

    outcome, good, inside = anyio.run(body)
    refusal = "403 api.example.org has an address that is private"
    assert outcome.stdout.decode().splitlines() == ["hi", refusal, "Tunnel connection failed: 403 Forbidden"]
    assert (good, inside) == (1, 0)


def test_the_defaults_refuse_an_allowed_name_that_leads_to_this_machine(tmp_path: Path) -> None:
    async def here(name: str, port: int) -> Sequence[tuple[str, int]]:
        del name
        return [("127.0.0.1", port)]

    outcome = anyio.run(allowed, tmp_path / "artifacts", f'print(asked("http://{NAME}/"))', Upstream(ask=here))
    assert outcome.stdout == b"403 api.example.org has an address that is loopback\n"


def test_there_is_no_way_but_the_proxy(tmp_path: Path) -> None:
    """Directly, by DNS, by IPv6, to services on the host's loopback, by raw sockets, and by other families."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=120):
            pass  # outside it works
        code = f"""
for family, address in ((socket.AF_INET, ("192.0.2.1", 443)), (socket.AF_INET6, ("2001:db8::1", 443)),
                        (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET, ("127.0.0.1", {port})),
                        (socket.AF_INET6, ("::1", {port}))):
    print(tried(lambda: socket.socket(family).connect(address)))
for server in ("192.0.2.53", "127.0.0.53"):
    query = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    query.connect((server, 53)) if server.startswith("127") else None
    print(tried(lambda: query.sendto(b"x", (server, 53)) and query.recv(99) and None))
try:
    print(socket.getaddrinfo("{NAME}", 443))
except socket.gaierror:
    print("no name")
for family, kind, protocol in (
    (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58),
    (socket.AF_INET, socket.SOCK_RAW, 255),
    (socket.AF_VSOCK, socket.SOCK_STREAM, 0), (socket.AF_PACKET, socket.SOCK_RAW, 3),
    (socket.AF_NETLINK, socket.SOCK_RAW, 0), (socket.AF_UNIX, socket.SOCK_STREAM, 0),
):
    print(tried(lambda: socket.socket(family, kind, protocol).close()))
"""
        lines, _, _ = ran(tmp_path, code)
    assert set(lines[:3]) <= {"ENETUNREACH", "EADDRNOTAVAIL"}
    assert lines[3:7] == ["ECONNREFUSED", "ECONNREFUSED", "ENETUNREACH", "ECONNREFUSED"]
    assert lines[7:] == ["no name", *["EPERM"] * 7]


def test_a_tool_cannot_take_the_proxys_place(tmp_path: Path) -> None:
    code = """
for address in ("127.0.0.1", "0.0.0.0"):
    taking = socket.socket()
    taking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    print(tried(lambda: taking.bind((address, 3128))))
"""
    assert ran(tmp_path, code)[0] == ["EADDRINUSE"] * 2


def test_nobody_else_reaches_a_sandboxs_proxy(tmp_path: Path) -> None:
    """Not another sandbox without a network, not one with other hosts, not this machine."""
    reach = 'print(tried(lambda: socket.create_connection(("127.0.0.1", 3128)).close()))'

    async def body() -> tuple[Outcome, Outcome, Outcome]:
        others_done, held = anyio.Event(), anyio.Event()

        async def hold(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
            held.set()
            await others_done.wait()
            await answering()(stream, heard)

        first: list[Outcome] = []
        async with host(hold) as made, anyio.create_task_group() as group:
            before = await _listens()

            async def hold_the_first() -> None:
                world = outside([made.endpoint])
                first.append(await allowed(tmp_path / "a", f'print(asked("http://{NAME}/"))', world))

            group.start_soon(hold_the_first)
            await held.wait()
            assert await _listens() == before
            second = await run(spec_for(tmp_path / "b", INSIDE + reach))
            third = await allowed(
                tmp_path / "c", f'print(asked("http://{NAME}/"))', outside(), allow_domains=("other.example",)
            )
            others_done.set()
        return first[0], second, third

    first, second, third = anyio.run(body)
    assert first.stdout == b"hi\n"
    assert second.stdout == b"ECONNREFUSED\n"
    assert third.stdout == b"403 api.example.org is not allowed\n"
    assert (len(first.contacts), len(second.contacts), len(third.contacts)) == (1, 0, 1)


async def _listens() -> bool:
    """Whether somebody serves at the proxy's port of this machine."""
    try:
        async with await anyio.connect_tcp("127.0.0.1", 3128):
            return True
    except OSError:
        return False


def test_a_proxy_that_is_gone_is_a_refused_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(door: Gateway) -> None:
        await door._open.wait()
        door.close()

    monkeypatch.setattr(Gateway, "serve", serve)
    code = """
for _ in range(1000):
    found = tried(lambda: socket.create_connection(("127.0.0.1", 3128)).close())
    if found != "done": break
print(found)
"""
    assert ran(tmp_path, code)[0] == ["ECONNREFUSED"]


def test_a_killed_tool_leaves_no_tunnel_no_socket_and_no_task(tmp_path: Path) -> None:
    code = f"""
client = http.client.HTTPConnection("127.0.0.1", 3128)
client.set_tunnel("{NAME}", 443)
client.connect()
client.sock.sendall(b"x")
client.sock.recv(1)
waiting = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(50)]
os.kill(os.getpid(), 9)
"""

    async def body() -> tuple[list[bytes], Outcome, set[str], set[str]]:
        ends: list[bytes] = []
        ended = anyio.Event()

        async def behave(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
            heard += await stream.receive()
            await stream.send(b"y")
            ends.append(await everything(stream))
            ended.set()

        async with host(behave) as made:
            await anyio.wait_all_tasks_blocked()
            tasks, descriptors = len(anyio.get_running_tasks()), sockets()
            outcome = await allowed(tmp_path / "artifacts", code, outside([made.endpoint]))
            assert outcome.signal == signal.SIGKILL
            with anyio.fail_after(120):
                await ended.wait()
                await anyio.wait_all_tasks_blocked()
            assert len(anyio.get_running_tasks()) == tasks
            return ends, outcome, descriptors, sockets()

    ends, outcome, before, after = anyio.run(body)
    assert ends[0] in {b"", BROKEN}
    assert outcome.contacts[0].bytes_out == 1
    assert after == before


def test_a_run_that_is_cancelled_leaves_nothing_either(tmp_path: Path) -> None:
    async def body() -> None:
        async with host(echo) as made:
            before = sockets()
            with anyio.CancelScope() as scope:

                async def ask(name: str, port: int) -> Sequence[tuple[str, int]]:
                    del name, port
                    scope.cancel()
                    return [made.endpoint]

                await allowed(tmp_path / "artifacts", f'asked("http://{NAME}/")', Upstream(ask, lambda *_: ""))
            assert scope.cancelled_caught
            await anyio.wait_all_tasks_blocked()
            assert sockets() == before

    anyio.run(body)


@pytest.mark.skipif(not os.path.exists("/usr/bin/curl"), reason="there is no curl")
def test_curl_needs_to_be_told_nothing(tmp_path: Path) -> None:
    async def once(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
        heard += await stream.receive()
        await stream.send(HEAD)

    async def body() -> Outcome:
        async with host(once) as made:
            one = spec_for(tmp_path / "artifacts", "", net="allow", allow_domains=(NAME,))
            argv = ("curl", "-sS", f"http://{NAME}/", "http://other.example/", f"https://{NAME}/")
            return await run(msgspec.structs.replace(one, argv=argv), upstream=outside([made.endpoint]))

    outcome = anyio.run(body)
    assert outcome.stdout.startswith(b"hiother.example is not allowed\n")
    assert [(contact.port, contact.verdict) for contact in outcome.contacts] == [
        (80, "allowed"), (80, "refused"), (443, "allowed")
    ]  # fmt: skip
