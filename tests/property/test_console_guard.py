"""A request, whatever it is and from whomever, reaches a page exactly when each of the guard's conditions holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.console.auth.entrance import Entered
from tests.support.effort import examples
from tests.support.entrances import HOST, ORIGIN, GuardedConsole, unsynced

WHO = ("ada", "vic", "gone", "")
"""One who approves; one who views; one who has signed out; nobody."""


@pytest.fixture(scope="module")
def people() -> Iterator[tuple[GuardedConsole, dict[str, Entered]]]:
    """A guarded console and its visitors."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        unsynced(patched)
        guarded = GuardedConsole(Path(folder), ada="approve", vic="view")
        entered = {"ada": guarded.entered("ada"), "vic": guarded.entered("vic"), "gone": guarded.entered("ada")}
        guarded.entrance._sessions.end(entered["gone"].visitor.session)
        yield guarded, entered


REQUESTS = st.fixed_dictionaries({
    "method": st.sampled_from(["GET", "POST", "HEAD", "PUT", "OPTIONS"]),
    "path": st.sampled_from(
        ["/", "/log", "/control/pause", "/theme", "/live", "//x", "/a/../b", "/static/x", "/sign-in"]
    ),
    "hosts": st.sampled_from([(HOST,), (HOST,), (HOST,), ("evil.example",), (HOST, HOST), ("localhost:8123",), ()]),
    "origin": st.sampled_from([None, ORIGIN, ORIGIN, "null", "http://localhost:8123", "http://127.0.0.1:9"]),
    "site": st.sampled_from([None, "same-origin", "same-origin", "none", "same-site", "cross-site"]),
    "who": st.sampled_from(WHO),
    "cookies": st.sampled_from([1, 1, 1, 2]),
    "csrf": st.sampled_from([*WHO, "ada", "vic", "absent"]),
    "type": st.sampled_from(["application/x-www-form-urlencoded", "text/plain"]),
})  # fmt: skip


@settings(max_examples=examples(400), deadline=None)
@given(request=REQUESTS)
@example({
    "method": "POST", "path": "/control/pause", "hosts": (HOST,), "origin": ORIGIN, "site": "same-origin", "who": "ada",
    "cookies": 1, "csrf": "ada", "type": "application/x-www-form-urlencoded",
})  # fmt: skip
@example({
    "method": "POST", "path": "/theme", "hosts": (HOST,), "origin": None, "site": "same-origin", "who": "vic",
    "cookies": 1, "csrf": "vic", "type": "application/x-www-form-urlencoded",
})  # fmt: skip
@example({
    "method": "POST", "path": "/control/pause", "hosts": (HOST,), "origin": None, "site": "same-origin", "who": "vic",
    "cookies": 1, "csrf": "vic", "type": "application/x-www-form-urlencoded",
})  # fmt: skip
def test_a_request_reaches_a_page_exactly_when_every_condition_holds(
    people: tuple[GuardedConsole, dict[str, Entered]], request: dict[str, Any]
) -> None:
    guarded, entered = people
    guarded.steady.now += 1.0
    guarded.probe.reached.clear()
    answer = guarded.ask(request["method"], request["path"], *_written(guarded, entered, request), host=None)
    assert len(guarded.probe.reached) == _should_reach(request), answer
    assert (answer.status == 200) == _should_reach(request)
    for scope in guarded.probe.reached:
        visitor = scope["state"]["visitor"]
        assert (visitor.operator if visitor else "") == _signed_in(request)
        assert "csrf" not in scope["state"]["form"]


def _written(
    guarded: GuardedConsole, entered: dict[str, Entered], request: dict[str, Any]
) -> tuple[list[tuple[str, str]], bytes]:
    """Its headers and body."""
    headers = [("host", host) for host in request["hosts"]]
    told = (("origin", request["origin"]), ("sec-fetch-site", request["site"]))
    headers += [(name, value) for name, value in told if value]
    if request["who"]:
        one = f"{guarded.cookie_name}={entered[request['who']].cookie}"
        headers.append(("cookie", "; ".join([one] * request["cookies"])))
    if request["method"] != "POST":
        return headers, b""
    token = "" if request["csrf"] in ("", "absent") else entered[request["csrf"]].visitor.csrf
    body = urlencode({"a": "b"} if request["csrf"] == "absent" else {"csrf": token, "a": "b"}).encode()
    return [*headers, ("content-type", request["type"]), ("content-length", str(len(body)))], body


def _signed_in(request: dict[str, Any]) -> str:
    """The person it comes from."""
    known = request["who"] in ("ada", "vic") and request["cookies"] == 1 and request["path"] != "/static/x"
    return request["who"] if known else ""


def _should_reach(request: dict[str, Any]) -> bool:
    """The conditions, said once more."""
    path, method, host, who = request["path"], request["method"], request["hosts"], _signed_in(request)
    own_origin = request["origin"] in (None, f"http://{host[0]}") if host else False
    if method not in ("GET", "HEAD", "POST") or path in ("//x", "/a/../b"):
        return False
    if host not in ((HOST,), ("localhost:8123",)) or not own_origin:
        return False
    if request["who"] and request["cookies"] == 2 and path not in ("/static/x", "/sign-in"):
        return False
    if method != "POST":
        return request["site"] not in ("same-site", "cross-site") and bool(who or path in ("/static/x", "/sign-in"))
    said = request["site"] == "same-origin" or (request["site"] is None and request["origin"] is not None)
    form = request["type"] == "application/x-www-form-urlencoded"
    if path == "/sign-in":
        return said and form
    mine, allowed = request["csrf"] == who, who == "ada" or path in ("/theme", "/control/pause")
    return said and form and path != "/static/x" and bool(who) and mine and allowed
