"""Only what equals ours passes, limits hold at every time, and sessions end when they should, whatever is sent."""

from __future__ import annotations

import posixpath
import tempfile
from itertools import accumulate
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

import anyio
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pmagent.console.address import Address
from pmagent.console.auth import operators
from pmagent.console.auth.forms import FIELDS_MAX, read_form
from pmagent.console.auth.heads import Head, Ours, Refusal, judge, read_head
from pmagent.console.auth.limits import Bucket
from pmagent.console.pages.views.entrance import own_page
from tests.support.effort import examples
from tests.support.entrances import Clock, GuardedConsole, unsynced

PORT = 8123
HOSTS = frozenset({f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"})
OURS = Ours(Address(1, f"http://127.0.0.1:{PORT}", PORT))
PIECES = st.sampled_from(
    ["127.0.0.1", "localhost", "LocalHost", "[::1]", ":", str(PORT), f":{PORT}", ".", "evil.example", "@", " ", "\t",
     ",", "http://", "https://", "HTTP://", "/", "null", "0", "\x00", "\u0131", "\u017f", "\u212a", "%"]
)  # fmt: skip
NAMES = st.sampled_from(sorted(HOSTS)) | st.lists(PIECES, max_size=4).map("".join) | st.text(max_size=30)
ORIGINS = st.none() | st.sampled_from([f"http://{host}" for host in sorted(HOSTS)]) | NAMES.map("http://{}".format)
SITES = st.sampled_from([None, "same-origin", "same-site", "cross-site", "none", "", "SAME-ORIGIN", "same-origin,"])
DECIDING = st.sampled_from([b"host", b"Host", b"HOST", b"origin", b"cookie", b"x"])
ADDRESSES = st.lists(
    st.sampled_from([*"/\\.%?#@: a\t\n\x00é", "//", "..", "evil.example", "%2f", "%2e", "%5C", "http:", "javascript:"]),
    max_size=7,
).map("".join)


def headers_of(**values: str | None) -> list[tuple[bytes, bytes]]:
    """The headers that there are."""
    return [
        (name.replace("_", "-").encode(), value.encode("utf-8", "surrogatepass"))
        for name, value in values.items()
        if value is not None
    ]


@settings(max_examples=examples(300))
@given(st.sampled_from(["GET", "POST"]), NAMES, ORIGINS, SITES, st.sampled_from([None, "navigate", "no-cors", "cors"]))
@example("POST", f"127.0.0.1:{PORT}", f"http://localhost:{PORT}", "same-origin", None)
@example("POST", f"127.0.0.1:{PORT}", None, "same-origin", None)
def test_only_what_equals_ours_passes(
    method: str, host: str, origin: str | None, site: str | None, mode: str | None
) -> None:
    head = read_head(method, b"/x", headers_of(host=host, origin=origin, sec_fetch_site=site, sec_fetch_mode=mode))
    assert isinstance(head, Head)
    passes = judge(head, OURS) is None
    known = host.isascii() and host.lower() in HOSTS
    own = origin is None or origin == f"http://{host.lower()}"
    said = (site or "").lower()
    if method == "POST":
        assert passes == (known and own and said in ("", "same-origin") and (origin is not None or said != ""))
    else:
        assert passes == (known and own and not (said in ("same-site", "cross-site") and mode != "navigate"))


@given(st.lists(st.tuples(DECIDING, st.binary(max_size=9)), max_size=6))
def test_a_header_that_decides_is_never_there_twice(headers: list[tuple[bytes, bytes]]) -> None:
    found = read_head("GET", b"/", headers)
    names = [name.lower() for name, _ in headers]
    if isinstance(found, Head):
        assert all(names.count(name) == 1 for name in set(names) - {b"x"})
    else:
        assert names.count(b"host") != 1 or max(names.count(name) for name in set(names) - {b"x"}) > 1


@settings(max_examples=examples(200))
@given(ADDRESSES | ADDRESSES.map("/{}".format))
@example("/%2e%2e/x")
def test_a_target_that_passes_is_the_same_page_for_everybody(target: str) -> None:
    """A browser, a router that collapses dots and slashes, and this console agree where it leads."""
    head = read_head("GET", target.encode(), [(b"host", b"localhost")])
    if isinstance(head, Head):
        path = unquote(target.partition("?")[0])
        collapsed = posixpath.normpath(path) + ("/" if path.endswith("/") and path != "/" else "")
        assert collapsed == path
        assert urlsplit(urljoin("http://console.example", target)).netloc == "console.example"


@settings(max_examples=examples(200))
@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=8))
def test_what_a_browser_writes_is_read_as_it_was_typed(fields: dict[str, str]) -> None:
    assume(all(_is_utf8(name + value) for name, value in fields.items()))
    typed = {name: value.replace("\r\n", "\n") for name, value in fields.items()}
    assert read_form(urlencode({name: value.replace("\n", "\r\n") for name, value in typed.items()}).encode()) == {
        name: value.replace("\n", "\r\n").replace("\r\n", "\n") for name, value in typed.items()
    }


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from([b"a", b"b", b"=", b"&", b"%", b"%41", b"%ff", b"%c3%a9", b"+", b";", b"\x80", b"%0"]),
                max_size=12).map(b"".join))  # fmt: skip
def test_a_form_has_one_reading_or_none(body: bytes) -> None:
    form = read_form(body)
    if isinstance(form, Refusal):
        return
    pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), errors="strict")
    assert len(pairs) == len(form) <= FIELDS_MAX
    assert dict(pairs) == form


@settings(max_examples=examples(150))
@given(
    st.floats(0.01, 50.0), st.integers(1, 10), st.integers(1, 4),
    st.lists(st.tuples(st.floats(0.0, 20.0), st.sampled_from("abcdef")), max_size=60),
)  # fmt: skip
def test_no_stretch_of_time_lets_more_through_than_its_burst_and_rate(
    rate: float, burst: int, keys: int, tries: list[tuple[float, str]]
) -> None:
    clock = Clock(0.0)
    bucket = Bucket(rate, burst, clock, keys)
    let: dict[str, list[float]] = {}
    for now, key in zip(accumulate(wait for wait, _ in tries), (key for _, key in tries), strict=True):
        clock.now = now
        if bucket.take(key) == 0.0:
            let.setdefault(key, []).append(now)
        assert len(bucket) <= keys
    for times in let.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= burst + rate * (times[last] - times[first]) + 1e-6


@settings(max_examples=examples(100))
@given(st.floats(0.01, 50.0), st.integers(1, 5), st.lists(st.floats(0.0, 1.0), max_size=20))
def test_the_time_that_is_told_is_enough(rate: float, burst: int, waits: list[float]) -> None:
    clock = Clock(0.0)
    bucket = Bucket(rate, burst, clock)
    for wait in waits:
        clock.now += wait
        told = bucket.take()
        if told:
            clock.now += told + 1e-9
            assert bucket.take() == 0.0


@settings(max_examples=examples(300))
@given(ADDRESSES | ADDRESSES.map("/{}".format))
@example("/\t/evil.example")
@example("/..//evil.example")
@example("/.//evil.example")
def test_the_way_back_leads_to_no_other_site_however_a_browser_reads_it(address: str) -> None:
    page = own_page(address)
    read = page.replace("\\", "/").replace("\t", "").replace("\n", "")  # URL Standard 4.4
    assert urlsplit(urljoin("http://127.0.0.1:8123/sign-in", read)).netloc == "127.0.0.1:8123"
    assert urlsplit(read).netloc == ""
    assert page.startswith("/")
    assert page in ("/", address)


class Model:
    """The sessions that should last, by cookie."""

    def __init__(self) -> None:
        self.sessions: dict[str, tuple[str, int, float, float]] = {}
        self.issues = {"ada": 1, "bob": 1}
        self.roles = {"ada": "approve", "bob": "view"}

    def role(self, cookie: str, now: float) -> str | None:
        """The role of somebody with this cookie; None: none."""
        if cookie not in self.sessions:
            return None
        name, issue, began, last = self.sessions[cookie]
        lasts = began - 60 <= now < min(began + 12 * 3600, last + 2 * 3600)
        if not lasts or self.roles.get(name) is None or self.issues[name] != issue:
            del self.sessions[cookie]
            return None
        self.sessions[cookie] = (name, issue, began, max(last, now))
        return self.roles[name]


STEPS = st.one_of(
    st.tuples(st.just("enter"), st.sampled_from(["ada", "bob"])),
    st.tuples(st.just("look"), st.integers(0, 5)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([-100.0, -30.0, 1.0, 3_000.0, 7_199.0, 7_200.0, 20_000.0])),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("remove"), st.sampled_from(["ada", "bob"])),
    st.tuples(st.just("add"), st.sampled_from(["ada", "bob"])),
    st.tuples(st.just("role"), st.sampled_from(["ada", "bob"])),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_a_session_lasts_exactly_as_long_as_it_should(steps: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        unsynced(patched)
        guarded, model = GuardedConsole(Path(folder), ada="approve", bob="view"), Model()
        cookies: list[str] = []
        for what, which in steps:
            _step(guarded, model, cookies, what, which)
            for cookie in cookies:
                visitor = guarded.entrance.visitor(cookie)
                assert (visitor.role if visitor else None) == model.role(cookie, guarded.clock.now), (what, which)


def _step(guarded: GuardedConsole, model: Model, cookies: list[str], what: str, which: object) -> None:
    file = guarded.paths.operators
    if what == "wait":
        assert isinstance(which, float)
        guarded.clock.now += which
        guarded.steady.now += max(which, 0.0)
    elif what == "restart":
        anyio.run(guarded.entrance._sessions.keep)
        guarded.start()
    elif what in ("look", "leave"):
        assert isinstance(which, int)
        if which < len(cookies):
            visitor = guarded.entrance.visitor(cookies[which])
            if what == "leave" and visitor is not None:
                anyio.run(guarded.entrance.sign_out, visitor)
                del model.sessions[cookies[which]]
    else:
        assert isinstance(which, str)
        _change(guarded, model, cookies, what, which)
        assert set(operators.read(file)) == {name for name in model.roles if model.roles[name]}


def _change(guarded: GuardedConsole, model: Model, cookies: list[str], what: str, name: str) -> None:
    file, there = guarded.paths.operators, name in model.roles
    if what == "enter" and there and len(model.sessions) < 60:
        guarded.steady.now += 1.0  # nobody is too hasty here
        entered = guarded.entered(name)
        cookies.append(entered.cookie)
        model.sessions[entered.cookie] = (name, model.issues[name], guarded.clock.now, guarded.clock.now)
    elif what == "remove" and there:
        operators.remove(file, name)
        del model.roles[name]
    elif what == "add" and not there:
        guarded.add(name, "view")
        model.roles[name], model.issues[name] = "view", model.issues[name] + 1
    elif what == "role" and there:
        role: operators.Role = "view" if model.roles[name] == "approve" else "approve"
        operators.set_role(file, name, role)
        model.roles[name] = role
