"""Plain HTTP through the proxy: what the host gets to see, what the tool gets back, and what cannot be smuggled."""

from __future__ import annotations

import anyio
import pytest

from pmagent.actors.sandbox.egress import proxy as proxies
from pmagent.actors.sandbox.egress.rules import Caps
from pmagent.actors.sandbox.egress.streams import CHUNK, Line
from tests.support.cases import each
from tests.support.proxied import BROKEN, HEAD, Behave, answering, everything, host, outside, proxied

GET = b"GET http://api.example.org/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
POST = b"POST http://api.example.org/x HTTP/1.1\r\nHost: api.example.org\r\n"


Said = tuple[bytes, list[bytes], list[tuple[str, str]]]
"""The tool's answer, the words the host heard on each connection, and the verdicts with their reasons."""


def said(request: bytes, behave: Behave) -> Said:
    """A request through a proxy to a host that behaves like that."""

    async def body() -> Said:
        async with host(behave) as made, proxied(outside([made.endpoint])) as proxy:
            got = await proxy.say(request)
        contacts = proxy.ledger.contacts
        return got, [bytes(heard) for heard in made.heard], [(each.verdict, each.reason) for each in contacts]

    return anyio.run(body)


def test_the_host_gets_one_request_of_our_writing() -> None:
    request = GET.replace(b"\r\n\r\n", b"\r\nProxy-Connection: keep-alive\r\nX-Trace: forged\r\nAccept: a\r\n\r\n")
    got, heard, contacts = said(request, answering())
    assert len(heard) == 1
    assert heard[0] == (
        b"GET /x HTTP/1.1\r\nhost: api.example.org\r\naccept: a\r\nvia: 1.1 pmagent\r\nconnection: close\r\n"
        b"x-trace: run-7\r\n\r\n"
    )
    assert got.lower() == (b"http/1.1 200 ok\r\ncontent-length: 2\r\nvia: 1.1 pmagent\r\nconnection: close\r\n\r\nhi")
    assert contacts == [("allowed", "")]


def test_what_follows_a_request_goes_nowhere() -> None:
    evil = b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    for second in (GET, evil, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"):
        got, heard, contacts = said(GET + second, answering())
        assert (len(heard), heard[0].count(b"HTTP/1.1"), got.count(b"HTTP/1.1"), len(contacts)) == (1, 1, 1, 1)
    body = b"Content-Length: 5\r\n\r\nhello"
    got, heard, contacts = said(POST + body + evil, answering(end=b"hello"))
    assert heard[0].endswith(b"content-length: 5\r\n\r\nhello")
    assert (len(heard), len(contacts)) == (1, 1)


@each("request_, status", [
    (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
    (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", b"400"),
    (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"501"),
    (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", b"400"),
    (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", b"400"),
    (GET.replace(b"Host: api.example.org", b"Host: evil.example"), b"403"),
    (GET.replace(b"Host: api.example.org", b"Host: api.example.org\r\nHost: evil.example"), b"400"),
    (GET.replace(b"Host: api.example.org\r\n", b""), b"400"),
    (GET.replace(b"Host", b"\x00Host"), b"400"),
    (GET.replace(b"api.example.org/", b"evil.example/"), b"403"),
    (b"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n", b"400"),
    (b"GET https://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n", b"400"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    (GET.replace(b"\r\n\r\n", b"\r\nX: " + b"y" * 200_000 + b"\r\n\r\n"), b"431"),
    (b"SSH-2.0-client\r\n\r\n", b"400"),
    (b"\x05\x01\x00\r\n\r\n", b"400"),
])
def test_what_is_in_doubt_never_leaves(request_: bytes, status: bytes) -> None:
    got, heard, contacts = said(request_, answering())
    assert heard == []
    assert got.split(b" ")[1] == status
    head, text = got.split(b"\r\n\r\n")
    assert contacts[0] == ("refused", text.decode().split("\n")[0])
    assert int(head.rpartition(b"Content-Length: ")[2].split(b"\r\n")[0]) == len(text)


def test_a_refusal_of_a_head_request_has_no_body() -> None:
    got, heard, _ = said(b"HEAD http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", answering())
    assert heard == []
    assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert got.endswith(b"\r\n\r\n")


def test_bodies_in_chunks_are_written_anew_and_trailers_end_here() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;ext=1\r\nabc\r\n0\r\nX: y\r\n\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-Smuggled: y\r\n\r\n"
    got, heard, _ = said(POST + body, answering(answer, end=b"0\r\n\r\n"))
    assert heard[0].endswith(b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert got.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert b"railer" not in got


def test_an_answer_that_ends_with_its_connection_is_passed_on_in_chunks_or_likewise() -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    assert said(GET, answering(answer))[0].endswith(b"d\r\nuntil the end\r\n0\r\n\r\n")
    old = said(GET.replace(b"HTTP/1.1", b"HTTP/1.0"), answering(answer))[0]
    assert old.endswith(b"\r\n\r\nuntil the end")
    assert b"chunked" not in old


@each("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body_have_none(status: bytes) -> None:
    got, _, contacts = said(GET, answering(b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n"))
    assert got.startswith(b"HTTP/1.1 " + status)
    assert got.endswith(b"connection: close\r\n\r\n")
    assert contacts == [("allowed", "")]


def test_head_gets_the_length_and_no_body() -> None:
    got, heard, _ = said(GET.replace(b"GET", b"HEAD"), answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"))
    assert heard[0].startswith(b"HEAD /x ")
    assert b"99\r\n" in got
    assert got.endswith(b"\r\n\r\n")


def test_informational_answers_end_here() -> None:
    got, _, _ = said(GET, answering(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HEAD))
    assert got.count(b"HTTP/1.1 ") == 1
    assert got.endswith(b"hi")


def test_whoever_waits_for_leave_to_send_its_body_gets_it_from_the_proxy() -> None:
    async def body() -> tuple[bytes, bytes, bytes]:
        async with (
            host(answering(end=b"hello")) as made, proxied(outside([made.endpoint])) as proxy,
            await proxy.connect() as stream,
        ):
            await stream.send(POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            leave = await stream.receive()
            await stream.send(b"hello")
            return leave, await everything(stream), bytes(made.heard[0])

    leave, got, heard = anyio.run(body)
    assert leave.startswith(b"HTTP/1.1 100 ")
    assert got.endswith(b"hi")
    assert b"xpect" not in heard


def test_an_answer_before_the_end_of_a_long_body_arrives() -> None:
    body = b"Content-Length: 500000\r\n\r\n" + b"x" * 500_000
    got, _, contacts = said(POST + body, answering(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"))
    assert got.startswith(b"HTTP/1.1 413 ")
    assert contacts == [("allowed", "")]


def test_a_host_that_reads_no_more_is_still_listened_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(Line):
        """The other side has closed its ear: after the head nothing can be sent. Before that is seen, nothing comes."""

        broken = anyio.Event()
        head = False

        async def send(self, data: bytes, /) -> None:
            if self.head:
                self.broken.set()
                raise anyio.BrokenResourceError
            self.head = True
            await super().send(data)

        async def receive(self, max_bytes: int = CHUNK, /) -> bytes:
            await self.broken.wait()
            return await super().receive(max_bytes)

    monkeypatch.setattr(proxies, "Line", Deaf)
    got, _, _ = said(POST + b"Content-Length: 5\r\n\r\nhello", answering())
    assert got.endswith(b"hi")


def test_a_tool_may_finish_what_it_sends_when_the_answer_is_there() -> None:
    async def body() -> bytes:
        async with (
            host(answering()) as made, proxied(outside([made.endpoint])) as proxy, await proxy.connect() as stream,
        ):
            await stream.send(POST + b"Content-Length: 500000\r\n\r\n")
            got = await everything(stream)
            for _ in range(50):
                await stream.send(b"x" * 1000)
            return got

    assert anyio.run(body).endswith(b"hi")


@each(
    "answer",
    [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 200\r\nA:" + b"b" * 10**6,
     b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"],
)  # fmt: skip
def test_a_host_that_gives_no_answer_is_told(answer: bytes) -> None:
    got, _, contacts = said(GET, answering(answer))
    assert got.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert contacts == [("allowed", "api.example.org gives no answer that could be read")]


def test_an_answer_that_breaks_off_is_seen_to() -> None:
    short = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nfirst part")
    chunks = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    for behave in (short, chunks):
        assert said(GET, behave)[0].endswith(BROKEN)
        assert said(GET.replace(b"HTTP/1.1", b"HTTP/1.0"), behave)[0].endswith(BROKEN)


def test_a_body_that_breaks_off_does_not_look_whole_to_the_host() -> None:
    async def body() -> bytes:
        async with host(answering(end=b"never")) as made, proxied(outside([made.endpoint])) as proxy:
            async with await proxy.connect() as stream:
                await stream.send(POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
                await stream.send_eof()
                await everything(stream)
            return bytes(made.heard[0])

    assert anyio.run(body).endswith(b"5\r\nhello\r\n")


def test_slow_heads_and_silent_visitors_do_not_stay() -> None:
    async def body() -> tuple[bytes, bytes, list[tuple[str, str, str]]]:
        async with proxied(outside([]), Caps(head_seconds=0.05)) as proxy:
            slow = await proxy.say(GET[:20])
            silent = await proxy.say(b"")
        return slow, silent, [(each.host, each.verdict, each.reason) for each in proxy.ledger.contacts]

    slow, silent, contacts = anyio.run(body)
    assert slow.startswith(b"HTTP/1.1 408 ")
    assert silent.startswith(b"HTTP/1.1 408 ")
    assert contacts == [("", "refused", "no request came in time")] * 2


def test_whoever_comes_and_goes_without_a_word_is_no_contact() -> None:
    async def body() -> int:
        async with proxied(outside([])) as proxy:
            async with await proxy.connect() as stream:
                await stream.send_eof()
                assert await everything(stream) == b""
            return len(proxy.ledger.contacts)

    assert anyio.run(body) == 0
