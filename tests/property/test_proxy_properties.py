"""The allowed host hears one request that is meant for it, or nothing, whatever a tool throws at its proxy."""

from __future__ import annotations

import anyio
import h11
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.actors.sandbox.egress.rules import Caps
from tests.support.effort import examples
from tests.support.proxied import BROKEN, NAME, answering, host, outside, proxied

NAMED = NAME.encode()
OWN = b"Host: " + NAMED + b"\r\n"
GET = b"GET http://" + NAMED + b"/ HTTP/1.1\r\n" + OWN
POST = b"POST http://" + NAMED + b"/ HTTP/1.1\r\n" + OWN
EVIL = b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
PIECES = (
    b"GET ", b"POST ", b"CONNECT ", b"http://", b"https://", b"/x", b"?q", b"@", b":80", b":443", b".", b" HTTP/1.1",
    b" HTTP/1.0", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b"\x0b", b"\xff", b":", b",", NAMED,
    NAMED.upper(), b"evil.example", b"127.0.0.1", b"Host: ", OWN, GET, POST, EVIL, b"Connection: close, host\r\n",
    b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"hello", b"5\r\nhello\r\n", b"0\r\n\r\n", b"5;x\r\n",
)  # fmt: skip
HEADERS = [piece for piece in PIECES if b": " in piece and piece.endswith(b"\r\n") and b"HTTP" not in piece]
REST = (st.lists(st.sampled_from(HEADERS), max_size=3) | st.lists(st.sampled_from(PIECES), max_size=5)).map(b"".join)
END = st.sampled_from([b"", b"\r\n", b"\r\n" + EVIL, b"\r\n5\r\nhello\r\n0\r\n\r\n"])


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from([b"", GET, POST]), REST, END)
@example(GET, b"", b"\r\n")
@example(POST, b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", EVIL)
def test_whatever_is_said_the_host_hears_one_request_for_it_or_nothing(start: bytes, rest: bytes, end: bytes) -> None:
    said = start + rest + end

    async def body() -> tuple[bytes, list[bytes], int]:
        caps = Caps(head_seconds=0.01, seconds=0.2)
        async with host(answering()) as made, proxied(outside([made.endpoint]), caps) as proxy:
            got = await proxy.say(said)
            await proxy.idle()
            return got, [bytes(heard) for heard in made.heard], len(proxy.ledger.contacts)

    got, heard, contacts = anyio.run(body)
    assert got.startswith(b"HTTP/1.1 ") or got in {b"", BROKEN}
    assert len(heard) <= 1
    assert contacts == 1 or got in {b"", BROKEN}
    if heard and heard[0] and not said.startswith(b"CONNECT "):  # its time may be over before anything was sent
        _check_one_request(heard[0])


def _check_one_request(heard: bytes) -> None:
    read = h11.Connection(h11.SERVER)
    read.receive_data(heard)
    request = read.next_event()
    assert isinstance(request, h11.Request)
    assert [value for name, value in request.headers if name == b"host"] == [NAMED]
    assert [value for name, value in request.headers if name == b"connection"] == [b"close"]
    assert request.target.startswith(b"/")
    while isinstance(event := read.next_event(), h11.Data):
        pass
    assert event is h11.NEED_DATA or isinstance(event, h11.EndOfMessage)
    assert read.trailing_data[0] == b"" or event is h11.NEED_DATA
