"""The guard refuses requests by their head, and every answer carries its headers."""

from __future__ import annotations

from urllib.parse import quote

import anyio
import pytest

from pmagent.console.auth.entrance import Entered
from pmagent.console.auth.headers import CSP
from tests.support.cases import each
from tests.support.entrances import ABSENT, HOST, ORIGIN, PORT, GuardedConsole, refused

# --- who is called, and by whom --------------------------------------------------------------------------------------


@each("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_the_console_answers_to_its_own_names(guarded: GuardedConsole, ada: Entered, host: str) -> None:
    assert guarded.ask("GET", "/", guarded.cookies(ada.cookie), host=host).status == 200


REBOUND = (
    "evil.example", f"evil.example:{PORT}", "127.0.0.1", "localhost", "127.0.0.1:80", f"127.0.0.1:{PORT + 1}",
    f"127.0.0.1.evil.example:{PORT}", f"evil.example@127.0.0.1:{PORT}", f"127.0.0.1:{PORT}@evil.example",
    f"127.0.0.1:{PORT}.", f"localhost.:{PORT}", f"127.0.0.2:{PORT}", f"127.1:{PORT}", f"2130706433:{PORT}",
    f"0x7f000001:{PORT}", f"0.0.0.0:{PORT}", f"[::]:{PORT}", f"::1:{PORT}", f"[::ffff:127.0.0.1]:{PORT}", "",
    f"{HOST},evil.example", f"{HOST} evil.example", f" {HOST}", f"{HOST}\t", f"xlocalhost:{PORT}", f"127.0.0.1:0{PORT}",
)  # fmt: skip


@each("host", REBOUND)
def test_a_name_that_merely_leads_here_is_refused(guarded: GuardedConsole, ada: Entered, host: str) -> None:
    """DNS rebinding: the page of evil.example, whose name suddenly leads to 127.0.0.1, is same-origin for a browser."""
    headers = [*guarded.cookies(ada.cookie), ("origin", f"http://{host}")]
    refused(guarded, guarded.ask("GET", "/", guarded.cookies(ada.cookie), host=host), 421)
    refused(guarded, guarded.ask("POST", "/x", headers, host=host), 421)


def test_without_a_host_or_with_two_nothing_is_answered(guarded: GuardedConsole, ada: Entered) -> None:
    cookies = guarded.cookies(ada.cookie)
    refused(guarded, guarded.ask("GET", "/", cookies, host=None), 400)
    refused(guarded, guarded.ask("GET", "/", [*cookies, ("host", HOST)]), 400)
    refused(guarded, guarded.ask("GET", "/", [*cookies, ("Host", "evil.example")]), 400)


def test_on_port_80_a_browser_leaves_the_port_out(guarded: GuardedConsole, ada: Entered) -> None:
    guarded.start(port=80)
    assert guarded.ask("GET", "/", guarded.cookies(ada.cookie), host="localhost").status == 200
    refused_answer = guarded.ask("GET", "/", guarded.cookies(ada.cookie), host=HOST)
    assert refused_answer.status == 421


@each(
    "host, status",
    [
        ("localhost", 200), ("localhost:8000", 200), ("127.0.0.1:1", 200), ("[::1]:65535", 200),
        ("evil.example", 421), ("localhost.evil.example:80", 421), ("localhost:", 421), ("localhost:0", 421),
        ("localhost:08", 421), ("localhost:8000:9", 421), ("127.0.0.2:80", 421), ("localhost:123456", 421),
    ],
)  # fmt: skip
def test_behind_a_socket_any_port_of_loopback_may_be_forwarded(
    guarded: GuardedConsole, ada: Entered, host: str, status: int
) -> None:
    guarded.start(port=0)
    assert guarded.ask("GET", "/", guarded.cookies(ada.cookie), host=host).status == status


@each(
    "target",
    [
        "http://evil.example/", f"http://{HOST}/", f"{HOST}", "*", "//evil.example/", "/\\evil.example", "",
        "approvals",
        "/../approvals", "/static/../approvals", "/static/%2e%2e/approvals", "/static/..%2Fapprovals", "/a/./b",
        "/a/..", "/a\\b", "/a%00b", "/a b", "/a#b", "/%2fevil.example", "/\x7f", "/é",
    ],
)  # fmt: skip
def test_a_target_is_a_path_that_leads_straight_to_its_page(guarded: GuardedConsole, ada: Entered, target: str) -> None:
    refused(guarded, guarded.ask("GET", target, guarded.cookies(ada.cookie)), 400)


def test_dots_in_names_and_in_what_is_asked_for_are_none_of_paths(guarded: GuardedConsole, ada: Entered) -> None:
    for target in ("/runs/x/artifacts/y/a..b", "/.well", "/log?grep=../..&x=//", "/%20x", "/..a", "/a%5cb"):
        assert guarded.ask("GET", target, guarded.cookies(ada.cookie)).status == 200


def test_an_address_has_a_length(guarded: GuardedConsole, ada: Entered) -> None:
    assert guarded.get("/" + "a" * 8191, ada.cookie).status == 200
    guarded.probe.reached.clear()
    refused(guarded, guarded.get("/" + "a" * 8192, ada.cookie), 414)
    refused(guarded, guarded.get("/?" + "a" * 8191, ada.cookie), 414)


def test_headers_have_a_size_together(guarded: GuardedConsole, ada: Entered) -> None:
    many = [(f"x-{number}", "a" * 200) for number in range(100)]
    refused(guarded, guarded.ask("GET", "/", [*guarded.cookies(ada.cookie), *many]), 431)
    assert guarded.ask("GET", "/", [*guarded.cookies(ada.cookie), *many[:70]]).status == 200


@each("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", ""])
def test_other_methods_are_not_answered(guarded: GuardedConsole, ada: Entered, method: str) -> None:
    answer = guarded.ask(method, "/", [*guarded.cookies(ada.cookie), ("origin", ORIGIN)])
    refused(guarded, answer, 405)
    assert answer.header("allow") == "GET, HEAD, POST"


@each(
    "headers",
    [
        [("content-length", "5"), ("transfer-encoding", "chunked")],
        [("content-length", "5"), ("content-length", "5")],
        [("content-length", "5"), ("content-length", "6")],
        [("content-length", "-1")],
        [("content-length", "+5")],
        [("content-length", "5, 5")],
        [("content-length", "0x5")],
        [("content-length", "")],
        [("transfer-encoding", "gzip, chunked")],
        [("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
        [("transfer-encoding", "xchunked")],
        [("cookie", "a=b"), ("cookie", "c=d")],
        [("origin", ORIGIN), ("Origin", "http://evil.example")],
        [("content-type", "application/x-www-form-urlencoded"), ("content-type", "text/plain")],
        [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        [("last-event-id", "1"), ("last-event-id", "2")],
    ],
)
def test_what_has_two_meanings_has_none(guarded: GuardedConsole, headers: list[tuple[str, str]]) -> None:
    refused(guarded, guarded.ask("POST", "/x", headers, b"a=b&c"), 400)


def test_who_looks_sends_nothing_along(guarded: GuardedConsole, ada: Entered) -> None:
    cookies = guarded.cookies(ada.cookie)
    refused(guarded, guarded.ask("GET", "/", [*cookies, ("content-length", "1")], b"x"), 400)
    refused(guarded, guarded.ask("HEAD", "/", [*cookies, ("transfer-encoding", "chunked")], b"x"), 400)
    assert guarded.ask("GET", "/", [*cookies, ("content-length", "0")]).status == 200


FOREIGN = (
    "null", "http://evil.example", "https://127.0.0.1:8123", "http://127.0.0.1", "http://127.0.0.1:8124",
    "http://localhost:8123", "http://127.0.0.1:8123/", "http://127.0.0.1:81230", "http://127.0.0.1:8123.evil.example",
    "file://", "", "http://[::1]:8123", "127.0.0.1:8123", "HTTP://127.0.0.1:8123", "chrome-extension://abcdef",
)  # fmt: skip


@each("origin", FOREIGN)
@each("site", [ABSENT, "same-origin"])
def test_a_request_of_another_origin_is_refused_whatever_else_it_carries(
    guarded: GuardedConsole, ada: Entered, origin: str, site: str
) -> None:
    fields = {"csrf": ada.visitor.csrf}
    refused(guarded, guarded.send("/x", fields, ada.cookie, ("origin", origin), ("sec-fetch-site", site)), 403)
    refused(guarded, guarded.get("/", ada.cookie, ("origin", origin)), 403)


def test_a_form_says_where_it_comes_from(guarded: GuardedConsole, ada: Entered) -> None:
    fields = {"csrf": ada.visitor.csrf}
    nothing = (("origin", ABSENT), ("sec-fetch-site", ABSENT))
    refused(guarded, guarded.send("/x", fields, ada.cookie, *nothing), 403)
    for site in ("cross-site", "same-site", "none", "anything"):
        refused(guarded, guarded.send("/x", fields, ada.cookie, ("sec-fetch-site", site)), 403)
        refused(guarded, guarded.send("/x", fields, ada.cookie, ("origin", ABSENT), ("sec-fetch-site", site)), 403)
    assert guarded.send("/x", fields, ada.cookie, ("origin", ABSENT)).status == 200
    assert guarded.send("/x", fields, ada.cookie, ("sec-fetch-site", ABSENT)).status == 200


def test_an_origin_is_ours_for_the_name_that_is_called(guarded: GuardedConsole, ada: Entered) -> None:
    """127.0.0.1 and localhost are two origins; a browser that shows one sends that."""
    headers = [*guarded.cookies(ada.cookie), ("origin", f"http://localhost:{PORT}"), ("content-length", "69"),
               ("content-type", "application/x-www-form-urlencoded")]  # fmt: skip
    body = f"csrf={ada.visitor.csrf}".encode()
    assert guarded.ask("POST", "/x", headers, body, host=f"localhost:{PORT}").status == 200
    guarded.probe.reached.clear()
    refused(guarded, guarded.ask("POST", "/x", headers, body), 403)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_lead_a_person_here_and_load_nothing(guarded: GuardedConsole, ada: Entered, site: str) -> None:
    """Another port of this machine is the same site for a browser: it would send the cookie along."""
    for mode in ("no-cors", "cors", "same-origin", "websocket", ""):
        refused(guarded, guarded.get("/", ada.cookie, ("sec-fetch-site", site), ("sec-fetch-mode", mode)), 403)
    assert guarded.get("/", ada.cookie, ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")).status == 200


@each("dest", ["iframe", "frame", "object", "embed", "fencedframe"])
def test_the_console_is_shown_in_no_frame(guarded: GuardedConsole, ada: Entered, dest: str) -> None:
    told = [("sec-fetch-dest", dest), ("sec-fetch-mode", "navigate"), ("sec-fetch-site", "cross-site")]
    refused(guarded, guarded.get("/", ada.cookie, *told), 403)

# --- what every answer carries ---------------------------------------------------------------------------------------


def test_every_answer_carries_the_same_headers_and_lets_no_other_site_read_it(
    guarded: GuardedConsole, ada: Entered
) -> None:
    answers = [
        guarded.get("/", ada.cookie), guarded.get("/"), guarded.get("/static/x"), guarded.post("/x", ada),
        guarded.get("/live"), guarded.ask("OPTIONS", "/"), guarded.ask("GET", "/", host="evil.example"),
        guarded.post("/x"), guarded.send("/x", {}, ada.cookie, ("content-type", "text/plain")),
    ]  # fmt: skip
    assert [answer.status for answer in answers] == [200, 303, 200, 200, 401, 405, 421, 403, 415]
    for answer in answers:
        assert answer.header("content-security-policy") == CSP.decode()
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("x-frame-options") == "DENY"
        assert answer.header("referrer-policy") == "same-origin"
        assert answer.header("cross-origin-opener-policy") == "same-origin"
        assert answer.header("cross-origin-resource-policy") == "same-origin"
        assert answer.header("cache-control") == "no-store"
        assert answer.header("server") is None
        assert not [name for name, _ in answer.headers if name.startswith("access-control-")]
        assert len(answer.header("x-orchestra-trace-id") or "") == 36
    assert len({answer.header("x-orchestra-trace-id") for answer in answers}) == len(answers)
    assert {
        "default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
    } <= set(CSP.decode().split("; "))  # fmt: skip
    assert "'unsafe" not in CSP.decode()


def test_a_refusal_does_not_repeat_what_was_sent(guarded: GuardedConsole, ada: Entered) -> None:
    nasty = "<script>alert(1)</script>"
    answers = [
        guarded.ask("GET", "/", [("origin", nasty)]), guarded.ask("GET", "/", host=nasty), guarded.ask(nasty, "/"),
        guarded.send("/" + quote(nasty), {"csrf": nasty}, ada.cookie), guarded.send("/x", {nasty: nasty}),
    ]  # fmt: skip
    for answer in answers:
        assert answer.status >= 400
        assert "<script>" not in answer.text


def test_there_are_no_websockets(guarded: GuardedConsole) -> None:
    async def ask() -> None:
        async def never() -> None:
            raise AssertionError

        await guarded.guard({"type": "websocket", "path": "/", "headers": []}, never, never)  # type: ignore[arg-type]

    anyio.run(ask)
    assert guarded.probe.reached == []
