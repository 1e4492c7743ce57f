"""The requests that a tool may make of its proxy, and what of them goes on."""

from __future__ import annotations

import socket
import string

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pmagent.actors.sandbox.egress.rules import ContactRefused, Headers, ProxyRequest, answered, host_name, judge, rules
from tests.support.cases import each

RULES = rules(("api.example.org", "xn--bcher-kva.example"), ("X-Trace", "run-7"))
HOST: Headers = ((b"host", b"api.example.org"),)


def wide(text: str) -> str:
    """In the full-width letters of East Asian fonts, which IDNA takes for the plain ones."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


def asked(method: str, target: str, *headers: tuple[bytes, bytes]) -> ProxyRequest:
    return judge(method.encode(), target.encode("latin-1"), headers, RULES)


def refused(method: str, target: str, *headers: tuple[bytes, bytes]) -> ContactRefused:
    with pytest.raises(ContactRefused) as caught:
        asked(method, target, *headers)
    assert caught.value.hint or "body" in caught.value.message
    return caught.value


@each("written, name", [
    ("example.org", "example.org"),
    ("EXAMPLE.Org", "example.org"),
    ("example.org.", "example.org"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("BÜCHER.Example.", "xn--bcher-kva.example"),
    ("bu\u0308cher.example", "xn--bcher-kva.example"),
    (wide("example") + "。org", "example.org"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("localhost", "localhost"),
    ("a--b.c", "a--b.c"),
    ("1a.2b", "1a.2b"),
    ("x" * 63 + ".org", "x" * 63 + ".org"),
])
def test_names_are_compared_in_one_form(written: str, name: str) -> None:
    assert host_name(written) == name


@each(
    "literal",
    ["127.0.0.1", "127.1", "127.0.0.1.", "2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "017700000001", "0", "0x",
     "1.2.3", "1.2.3.4.5", "a.b.0x1f", "foo.1", "[::1]", "[::ffff:127.0.0.1]", "::1", "fe80::1%eth0", "[fe80::1%25e0]",
     wide("127.0.0.1"), "127。0。0。1", "127.0.0.①", "[v1.x]"],
)  # fmt: skip
def test_an_ip_address_is_no_name_however_it_is_written(literal: str) -> None:
    with pytest.raises(ContactRefused, match="is an IP address"):
        host_name(literal)


@each(
    "wrong",
    ["", ".", "..", "a..b", ".a", "a..", "*", "*.example.org", "-a", "a-", "a_b", "a b", "a/b", "a\\b", "a%2eb", "a%00",
     "a\0b", "a\nb", "a\r", "user@a", "x" * 64, "a." * 127 + "ab", "a" * 5000, "\u2028", "a\u200db.example",
     "\ud800.example", "a,b", "a;b", "http://a", "a:80", "a'b", wide("a/b")],
)  # fmt: skip
def test_what_is_no_exact_host_name_is_refused(wrong: str) -> None:
    with pytest.raises(ContactRefused, match="is no exact host name"):
        host_name(wrong)


@given(st.text(max_size=40) | st.text(alphabet="abcx0123456789.-[]:%", max_size=20))
@example("a.0x")
@example("08.1")
def test_a_name_is_its_own_form_and_nothing_that_a_resolver_takes_for_an_address(text: str) -> None:
    try:
        name = host_name(text)
    except ContactRefused:
        return
    assert host_name(name) == name
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-.")
    assert host_name(name.upper() + ".") == name
    for take in (socket.inet_aton, lambda name: socket.inet_pton(socket.AF_INET6, name)):
        with pytest.raises(OSError, match=r"."):
            take(name)


NUMBER = st.integers(0, 2**32).flatmap(lambda n: st.sampled_from([str(n), hex(n), f"0{n:o}", hex(n).upper()]))


@given(st.lists(NUMBER, min_size=1, max_size=4).map(".".join))
def test_no_number_of_any_base_passes_for_a_name(literal: str) -> None:
    with pytest.raises(ContactRefused, match="is an IP address"):
        host_name(literal)


@each("target", ["api.example.org:443", "API.Example.ORG:443", "api.example.org.:443"])
def test_a_tunnel_goes_to_an_allowed_name_however_it_is_written(target: str) -> None:
    assert asked("CONNECT", target) == ProxyRequest(host="api.example.org", port=443, method=b"CONNECT")


@each("target, path", [
    ("http://api.example.org", b"/"),
    ("http://api.example.org/", b"/"),
    ("http://api.example.org:80/a/b?c=d", b"/a/b?c=d"),
    ("HTTP://API.EXAMPLE.ORG./x", b"/x"),
    ("http://api.example.org?x", b"/?x"),
    ("http://api.example.org/@evil.example/http://other", b"/@evil.example/http://other"),
    ("http://api.example.org//x", b"//x"),
])
def test_a_plain_request_goes_on_with_its_path_alone(target: str, path: bytes) -> None:
    found = asked("GET", target)
    assert (found.host, found.port, found.target, found.tunnel) == ("api.example.org", 80, path, False)


@each("method, target, status, said", [
    ("CONNECT", "evil.example:443", 403, "evil.example is not allowed"),
    ("CONNECT", "api.example.org.evil.example:443", 403, "not allowed"),
    ("CONNECT", "evilapi.example.org:443", 403, "not allowed"),
    ("CONNECT", "example.org:443", 403, "not allowed"),
    ("CONNECT", "www.api.example.org:443", 403, "not allowed"),
    ("CONNECT", "api.example.org:80", 403, "port 80"),
    ("CONNECT", "api.example.org:22", 403, "port 22"),
    ("CONNECT", "api.example.org:4430", 403, "port 4430"),
    ("CONNECT", "api.example.org:99999", 403, "port 99999"),
    ("CONNECT", "api.example.org", 403, "port none"),
    ("CONNECT", "api.example.org:0443", 400, "cannot be read"),
    ("CONNECT", "api.example.org:", 400, "cannot be read"),
    ("CONNECT", ":443", 400, "cannot be read"),
    ("CONNECT", "", 400, "cannot be read"),
    ("CONNECT", "::1:443", 400, "cannot be read"),
    ("CONNECT", "[::1]:443", 403, "IP address"),
    ("CONNECT", "[fd00:ec2::254]:443", 403, "IP address"),
    ("CONNECT", "169.254.169.254:443", 403, "IP address"),
    ("CONNECT", "2852039166:443", 403, "IP address"),
    ("CONNECT", "api.example.org@evil.example:443", 403, "user name"),
    ("CONNECT", "api.example.org/x:443", 403, "host name"),
    ("CONNECT", "http://api.example.org:443", 400, "cannot be read"),
    ("CONNECT", "api.example.org\\evil:443", 403, "host name"),
    ("GET", "/path", 400, "no absolute address"),
    ("OPTIONS", "*", 400, "no absolute address"),
    ("GET", "api.example.org:80", 400, "no absolute address"),
    ("GET", "http:api.example.org", 400, "no absolute address"),
    ("GET", "http:/api.example.org", 400, "no absolute address"),
    ("GET", "//api.example.org/", 400, "no absolute address"),
    ("GET", "http://api.example.org/#x", 400, "no absolute address"),
    ("GET", "http://api.example.org/a b", 400, "no absolute address"),
    ("GET", "http://api.example.org/a\r\nX: y", 400, "no absolute address"),
    ("GET", "https://api.example.org/", 400, "only http"),
    ("GET", "ftp://api.example.org/", 400, "only http"),
    ("GET", "file:///etc/passwd", 400, "only http"),
    ("GET", "http:///x", 400, "cannot be read"),
    ("GET", "http://api.example.org:/", 400, "cannot be read"),
    ("GET", "http://api.example.org:443/", 403, "port 443"),
    ("GET", "http://api.example.org:8080/", 403, "port 8080"),
    ("GET", "http://evil.example/", 403, "not allowed"),
    ("GET", "http://api.example.org@evil.example/", 403, "user name"),
    ("GET", "http://evil.example@api.example.org/", 403, "user name"),
    ("GET", "http://a:b@api.example.org/", 403, "user name"),
    ("GET", "http://api.example.org\\@evil.example/", 403, "user name"),
    ("GET", "http://api.example.org\\.evil.example/", 403, "host name"),
    ("GET", "http://api.example.org%00.evil.example/", 403, "host name"),
    ("GET", "http://api%2eexample.org/", 403, "host name"),
    ("GET", "http://0x7f.1/", 403, "IP address"),
    ("GET", "http://[::ffff:169.254.169.254]/", 403, "IP address"),
])
def test_everything_else_is_refused_with_the_reason(method: str, target: str, status: int, said: str) -> None:
    refusal = refused(method, target)
    assert said in refusal.message
    assert refusal.status == status


def test_a_refusal_knows_what_was_asked_for() -> None:
    refusal = refused("CONNECT", "Evil.Example:443")
    assert (refusal.host, refusal.port) == ("Evil.Example", 443)
    refusal = refused("GET", "http://" + "x" * 5000 + "/")
    assert (len(refusal.host), refusal.port) == (253, 80)


@each("host", [b"api.example.org", b"API.example.org.", b"api.example.org:80", b" api.example.org "])
def test_host_may_say_what_the_target_says(host: bytes) -> None:
    assert asked("GET", "http://api.example.org/", (b"host", host)).headers[0] == (b"host", b"api.example.org")


@each(
    "host", [b"xn--bcher-kva.example", b"evil.example", b"api.example.org:8", b"api.example.org:443", b"127.1", b"\xff"]
)  # fmt: skip
def test_host_may_not_say_anything_else(host: bytes) -> None:
    assert refused("GET", "http://api.example.org/", (b"host", host)).status == 403


@each("hosts", [(b"",), (b"a, b",), (b"api.example.org", b"api.example.org"), (b"u@a:x",)])
def test_host_is_said_once_and_readably(hosts: tuple[bytes, ...]) -> None:
    refusal = refused("GET", "http://api.example.org/", *((b"host", host) for host in hosts))
    assert refusal.status in {400, 403}


def test_host_of_a_tunnel_agrees_too() -> None:
    assert asked("CONNECT", "api.example.org:443", (b"host", b"api.example.org:443")).host == "api.example.org"
    assert asked("CONNECT", "api.example.org:443", (b"host", b"api.example.org")).host == "api.example.org"
    assert refused("CONNECT", "api.example.org:443", (b"host", b"api.example.org:80")).status == 403


def test_headers_of_the_connection_end_here_and_the_trace_id_is_ours() -> None:
    found = asked(
        "POST", "http://api.example.org/", *HOST, (b"accept", b"*/*"), (b"connection", b"keep-alive, X-Secret"),
        (b"proxy-connection", b"keep-alive"), (b"keep-alive", b"300"), (b"te", b"trailers"), (b"trailer", b"x"),
        (b"upgrade", b"websocket"), (b"proxy-authorization", b"Basic eA=="), (b"x-secret", b"1"),
        (b"expect", b"100-continue"), (b"x-trace", b"forged"), (b"via", b"1.0 other"), (b"cookie", b"a=b"),
        (b"cookie", b"c=d"), (b"content-length", b"3"),
    )  # fmt: skip
    assert found.headers == (
        (b"host", b"api.example.org"), (b"accept", b"*/*"), (b"cookie", b"a=b"), (b"cookie", b"c=d"),
        (b"via", b"1.1 pmagent"), (b"connection", b"close"), (b"x-trace", b"run-7"), (b"content-length", b"3"),
    )  # fmt: skip


def test_naming_a_header_of_ours_takes_nothing_from_what_goes_on() -> None:
    naming = (b"connection", b"host, content-length, x-trace, via, transfer-encoding")
    found = asked("POST", "http://api.example.org/", *HOST, naming, (b"content-length", b"3"))
    assert {b"host", b"content-length", b"x-trace", b"via"} <= {name for name, _ in found.headers}


@each("framing", [
    [(b"content-length", b"3"), (b"transfer-encoding", b"chunked")],
    [(b"content-length", b"3"), (b"content-length", b"4")],
    [(b"content-length", b"3, 4")],
    [(b"content-length", b"+3")],
    [(b"content-length", b"-1")],
    [(b"content-length", b"0x3")],
    [(b"content-length", b"3 3")],
    [(b"content-length", b"")],
    [(b"content-length", b"9" * 30)],
    [(b"content-length", "٣".encode())],
    [(b"transfer-encoding", b"gzip, chunked")],
    [(b"transfer-encoding", b"chunked, identity")],
    [(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")],
    [(b"transfer-encoding", b"xchunked")],
    [(b"transfer-encoding", b"\x0bchunked")],
    [(b"transfer-encoding", b"")],
])
def test_a_length_in_doubt_is_refused(framing: list[tuple[bytes, bytes]]) -> None:
    refusal = refused("POST", "http://api.example.org/", *HOST, *framing)
    assert "length of the body" in refusal.message
    assert refusal.status == 400


def test_a_tunnel_has_no_body() -> None:
    assert asked("CONNECT", "api.example.org:443", (b"content-length", b"0")).tunnel
    for framing in ((b"content-length", b"3"), (b"transfer-encoding", b"chunked")):
        assert refused("CONNECT", "api.example.org:443", framing).status == 400


TOKEN = st.text(alphabet=string.ascii_lowercase + "-", min_size=1, max_size=12)
NAMES = TOKEN | st.sampled_from(["connection", "te", "upgrade", "x-trace", "via", "expect", "keep-alive", "cookie"])
VALUES = st.text(alphabet=string.ascii_letters + string.digits + ", =;", max_size=20).map(str.strip)
HEADERS = st.lists(st.tuples(NAMES, VALUES).filter(lambda pair: pair[0] not in {"host", "content-length"}), max_size=8)


@given(HEADERS)
def test_what_goes_on_is_one_request_to_the_allowed_host(pairs: list[tuple[str, str]]) -> None:
    headers = tuple((name.encode(), value.encode()) for name, value in pairs if name != "transfer-encoding")
    found = judge(b"GET", b"http://api.example.org/x", (*HOST, *headers), RULES)
    names = [name for name, _ in found.headers]
    for once in (b"host", b"connection", b"via", b"x-trace"):
        assert names.count(once) == 1
    assert not {b"te", b"upgrade", b"keep-alive", b"expect", b"transfer-encoding", b"content-length"} & set(names)
    sent = h11.Connection(h11.CLIENT).send(h11.Request(method="GET", target=found.target, headers=list(found.headers)))
    assert sent is not None
    assert sent.startswith(b"GET /x HTTP/1.1\r\n")


@given(st.sampled_from([b"GET", b"CONNECT"]), st.binary(max_size=60), st.binary(max_size=30))
@example(b"GET", b"http://api.example.org:80", b"api.example.org")
def test_whatever_comes_is_refused_or_goes_to_an_allowed_name(method: bytes, target: bytes, host: bytes) -> None:
    for tried in (target, b"http://" + target, target + b"api.example.org:443", b"http://api.example.org" + target):
        try:
            found = judge(method, tried, ((b"host", host),), RULES)
        except ContactRefused as refusal:
            assert refusal.status in {400, 403}  # noqa: PT017  (or it is granted)
        else:
            assert found.host in RULES.names
            assert found.port == (443 if found.tunnel else 80)
            assert host_name(host.decode().strip().rpartition(":")[0] or host.decode().strip()) == found.host


def test_of_an_answer_the_headers_of_the_connection_end_here() -> None:
    headers = (
        (b"connection", b"keep-alive, x-hop"), (b"x-hop", b"1"), (b"keep-alive", b"5"), (b"set-cookie", b"a=b"),
        (b"content-length", b"5"), (b"proxy-authenticate", b"Basic"), (b"transfer-encoding", b"chunked"),
    )  # fmt: skip
    assert answered(headers) == (
        (b"set-cookie", b"a=b"), (b"content-length", b"5"), (b"transfer-encoding", b"chunked"),
        (b"via", b"1.1 pmagent"), (b"connection", b"close"),
    )  # fmt: skip


@each("domains, trace, said", [
    ((), None, "no host is allowed"),
    (("",), None, "no exact host name"),
    (("ok.example", "10.0.0.1"), None, "IP address"),
    (("ok.example",), ("Connection", "x"), "cannot carry"),
    (("ok.example",), ("Transfer-Encoding", "x"), "cannot carry"),
    (("ok.example",), ("content-length", "x"), "cannot carry"),
    (("ok.example",), ("bad name", "x"), "cannot carry"),
    (("ok.example",), ("", "x"), "cannot carry"),
    (("ok.example",), ("X", ""), "does not fit"),
    (("ok.example",), ("X", "a b"), "does not fit"),
    (("ok.example",), ("X", "a\r\nY: b"), "does not fit"),
    (("ok.example",), ("X", "a" * 201), "does not fit"),
    (("ok.example",), ("X", "é"), "does not fit"),
])
def test_rules_that_cannot_hold_are_refused(domains: tuple[str, ...], trace: tuple[str, str] | None, said: str) -> None:
    with pytest.raises(ContactRefused, match=said):
        rules(domains, trace)


def test_rules_hold_names_in_the_form_in_which_they_are_compared() -> None:
    assert rules(("Api.Example.ORG.", "bücher.example"), None).names == {"api.example.org", "xn--bcher-kva.example"}
