"""The clients that the guard lets through, with which forms, and how often; none of what it refuses reaches a page."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from pmagent.console.auth import forms, operators
from pmagent.console.auth import guard as guard_module
from pmagent.console.auth.entrance import Entered
from pmagent.console.live.feed import Feed, Run
from pmagent.console.live.stream import Streams
from pmagent.events.event import Tail
from pmagent.events.evidence import log_in
from tests.support.cases import each
from tests.support.entrances import ABSENT, HOST, ORIGIN, Answer, GuardedConsole, asked, refused

# --- who is signed in ------------------------------------------------------------------------------------------------


def test_a_stranger_is_sent_to_the_sign_in_and_back(guarded: GuardedConsole) -> None:
    for target in ("/", "/log?type=oa.&after=5", "/approvals/prop-1%2F"):
        answer = guarded.get(target)
        refused(guarded, answer, 303)
        where = answer.header("location") or ""
        assert where == ("/sign-in" if target == "/" else f"/sign-in?next={quote(target, safe='')}")
    for live in ("/live", "/live/log", "/live?after=3"):
        refused(guarded, guarded.get(live), 401)
    refused(guarded, guarded.post("/control/pause"), 403)
    assert guarded.get("/static/console.css").status == 200


@each("site", ["cross-site", "same-site"])
def test_a_link_elsewhere_leads_to_its_page_though_it_brings_no_cookie(guarded: GuardedConsole, site: str) -> None:
    """A strict cookie is not sent along from another site: the console asks for the page anew, from its own."""
    target = "/runs/5b0c?x='\"<b>&amp=1"
    answer = guarded.get(target, "", ("sec-fetch-site", site), ("sec-fetch-mode", "navigate"))
    refused(guarded, answer, 200)
    onward = "/runs/5b0c?x=&#39;&#34;&lt;b&gt;&amp;amp=1"
    assert f'<meta http-equiv="refresh" content="0; url={onward}">' in answer.text
    again = guarded.get(target, "", ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate"))
    refused(guarded, again, 303)
    assert (again.header("location") or "").startswith("/sign-in?next=")
    refused(guarded, guarded.get("/live", "", ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")), 401)


@each(
    "cookies",
    [
        "NAME={0}; NAME={0}", "NAME={0}; NAME=x", "NAME=x; NAME={0}", "name={0}", "NAME={0}x", "NAME=\"{0}\"",
        "NAME= {0} x", "XNAME={0}", "NAME", "NAME={0}, x=y", "NAME={0}%20", "NAME={1}",
    ],
)  # fmt: skip
def test_a_cookie_is_ours_when_it_is_exactly_that(guarded: GuardedConsole, ada: Entered, cookies: str) -> None:
    sent = cookies.format(ada.cookie, ada.visitor.session).replace("NAME", guarded.cookie_name)
    refused(guarded, guarded.ask("GET", "/", [("cookie", sent.replace("name", guarded.cookie_name.upper()))]), 303)


def test_a_cookie_stands_among_others(guarded: GuardedConsole, ada: Entered) -> None:
    sent = f"theme=dark; {guarded.cookie_name}={ada.cookie};x=y"
    assert guarded.ask("GET", "/", [("cookie", sent)]).status == 200
    scope = guarded.probe.reached[0]
    assert scope["state"]["visitor"] == ada.visitor
    assert scope["state"]["cookie"] == ada.cookie


def test_the_cookie_of_another_workspace_has_another_name(guarded: GuardedConsole, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = GuardedConsole(tmp_path / "other", ada="approve")
    assert other.cookie_name != guarded.cookie_name
    refused(guarded, guarded.ask("GET", "/", other.cookies(other.entered("ada").cookie)), 303)


def test_who_was_removed_is_out_at_the_next_request(guarded: GuardedConsole, ada: Entered) -> None:
    assert guarded.get("/", ada.cookie).status == 200
    operators.remove(guarded.paths.operators, "ada")
    guarded.probe.reached.clear()
    refused(guarded, guarded.get("/", ada.cookie), 303)
    refused(guarded, guarded.post("/control/resume", ada), 403)


def test_a_file_of_operators_that_cannot_be_trusted_lets_nobody_in_and_says_what_to_do(
    guarded: GuardedConsole, ada: Entered
) -> None:
    guarded.paths.operators.chmod(0o644)
    pages = [guarded.get("/", ada.cookie), guarded.get("/sign-in"), guarded.get("/enter?token=x")]
    for answer in (*pages, guarded.post("/x", ada)):
        refused(guarded, answer, 503)
        assert "chmod 600" in answer.text
        assert "0644" in answer.text
    assert guarded.get("/static/console.css").status == 200


def test_it_is_said_when_nobody_can_look_who_is_signed_in(
    guarded: GuardedConsole, ada: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(guarded.entrance, "visitor", look)
    refused(guarded, guarded.get("/", ada.cookie), 503)


# --- forms -----------------------------------------------------------------------------------------------------------


def test_a_form_of_ours_reaches_its_page_with_its_fields(guarded: GuardedConsole, ada: Entered) -> None:
    assert guarded.post("/approvals/prop-1", ada, decision="reject", reason="ä & b=c\r\nd").status == 200
    (scope,) = guarded.probe.reached
    assert scope["state"]["form"] == {"decision": "reject", "reason": "ä & b=c\nd"}
    assert scope["state"]["visitor"] == ada.visitor


def test_a_form_needs_the_token_of_its_session(guarded: GuardedConsole, ada: Entered) -> None:
    other = guarded.entered("ada")
    vic = guarded.entered("vic")
    wrong = ["", "x", other.visitor.csrf, vic.visitor.csrf, ada.cookie, ada.visitor.session, ada.visitor.csrf.upper(),
             ada.visitor.csrf + "0", ada.visitor.csrf[:-1], " " + ada.visitor.csrf, "ä"]  # fmt: skip
    for token in wrong:
        refused(guarded, guarded.send("/control/pause", {"csrf": token}, ada.cookie), 403)
    refused(guarded, guarded.send("/control/pause", {"a": "b"}, ada.cookie), 403)
    refused(guarded, guarded.send("/control/pause?csrf=" + ada.visitor.csrf, {"a": "b"}, ada.cookie), 403)
    refused(guarded, guarded.send("/sign-out", {"csrf": other.visitor.csrf}, ada.cookie), 403)


def test_who_may_look_may_stop_and_changes_nothing_else(guarded: GuardedConsole) -> None:
    vic = guarded.entered("vic")
    for target in (
        "/control/resume", "/control/arm", "/control/pause/", "/approvals/prop-1", "/runs/x/cancel",
        "/integrity/verify", "/themes", "/theme/",
    ):  # fmt: skip
        answer = guarded.post(target, vic)
        refused(guarded, answer, 403)
        assert "vic may look and stop" in answer.text
        assert "pmagent operators role vic approve" in answer.text
    assert guarded.get("/control/pause", vic.cookie).status == 200
    guarded.probe.reached.clear()
    for target in ("/theme", "/control/pause", "/control/disarm", "/sign-out"):
        assert guarded.post(target, vic).status == 200


def test_a_role_that_was_lowered_holds_for_the_form_that_is_open(guarded: GuardedConsole, ada: Entered) -> None:
    operators.set_role(guarded.paths.operators, "ada", "view")
    refused(guarded, guarded.post("/approvals/prop-1", ada), 403)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/x-www-form-urlencoded; charset=utf-8", 200), ("APPLICATION/X-WWW-FORM-URLENCODED", 200),
        ("application/x-www-form-urlencoded;charset=UTF-8", 200), ("text/plain", 415), ("", 415), (ABSENT, 415),
        ("multipart/form-data; boundary=x", 415), ("application/json", 415),
        ("application/x-www-form-urlencoded; charset=utf-7", 415),
        ("application/x-www-form-urlencoded, text/plain", 415),
    ],
)  # fmt: skip
def test_only_forms_are_taken(guarded: GuardedConsole, ada: Entered, kind: str, status: int) -> None:
    answer = guarded.send("/x", {"csrf": ada.visitor.csrf}, ada.cookie, ("content-type", kind))
    assert answer.status == status
    assert len(guarded.probe.reached) == (status == 200)


@each(
    "fields",
    [
        "a=1&a=1", "a=1&a=2", "a=1&%61=2", "csrf={0}&csrf=x", "a", "a&b=c", "=x", "&a=1", "a=1&", "a=%", "a=%4",
        "a=%zz",
        "a=%ff", "a=%c3", "a=%ed%a0%80", "a=%c0%80", "a=\x00", "a=b c", "a=1;b=2#", "a=\xe9", "a=<b>",
        "&".join(f"f{n}=" for n in range(64)),
    ],
)  # fmt: skip
def test_a_form_that_no_browser_writes_is_refused(guarded: GuardedConsole, ada: Entered, fields: str) -> None:
    body = f"csrf={ada.visitor.csrf}&{fields}".format(ada.visitor.csrf)
    refused(guarded, guarded.send("/x", body, ada.cookie), 400)


def test_a_form_has_a_size_also_when_it_does_not_say_which(guarded: GuardedConsole, ada: Entered) -> None:
    body = f"csrf={ada.visitor.csrf}&a=".encode()
    most = body + b"x" * (65_536 - len(body))
    headers = [*guarded.cookies(ada.cookie), ("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded")]
    chunked = [*headers, ("transfer-encoding", "chunked")]
    assert guarded.ask("POST", "/x", [*headers, ("content-length", "65536")], most).status == 200
    assert guarded.ask("POST", "/x", chunked, [most[:9], most[9:], b""]).status == 200
    guarded.probe.reached.clear()
    refused(guarded, guarded.ask("POST", "/x", [*headers, ("content-length", "65537")], b""), 413)
    refused(guarded, guarded.ask("POST", "/x", [*headers, ("content-length", "9" * 9_000)], b""), 413)
    refused(guarded, guarded.ask("POST", "/x", chunked, [most, b"x"]), 413)
    refused(guarded, guarded.ask("POST", "/x", [*headers, ("content-length", "1")], most + b"x"), 413)


def test_a_form_that_does_not_come_is_not_waited_for(
    guarded: GuardedConsole, ada: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "BODY_SECONDS", 0.01)
    sent: list[dict[str, object]] = []

    async def ask() -> None:
        scope = {
            "type": "http", "method": "POST", "path": "/x", "raw_path": b"/x", "query_string": b"",
            "headers": [(b"host", HOST.encode()), (b"origin", ORIGIN.encode()), (b"content-length", b"9"),
                        (b"content-type", b"application/x-www-form-urlencoded"),
                        (b"cookie", guarded.cookies(ada.cookie)[0][1].encode())],
        }  # fmt: skip

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        await guarded.guard(scope, anyio.sleep_forever, send)  # type: ignore[arg-type]

    anyio.run(ask)
    assert sent[0]["status"] == 408
    assert guarded.probe.reached == []


def test_a_form_that_breaks_off_is_refused(guarded: GuardedConsole, ada: Entered) -> None:
    headers = [*guarded.cookies(ada.cookie), ("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded"),
               ("content-length", "99")]  # fmt: skip

    refused(guarded, guarded.ask("POST", "/x", headers, []), 400)


@pytest.mark.parametrize("change", ["signs out", "is removed", "may only look from now on"])
def test_who_goes_while_a_form_is_on_its_way_has_sent_nothing(
    guarded: GuardedConsole, ada: Entered, change: str
) -> None:
    body = f"csrf={ada.visitor.csrf}".encode()
    headers = [*guarded.cookies(ada.cookie), ("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded")]

    async def slow() -> AsyncIterator[bytes]:
        yield body[:9]
        if change == "signs out":
            await guarded.entrance.sign_out(ada.visitor)
        elif change == "is removed":
            operators.remove(guarded.paths.operators, "ada")
        else:
            operators.set_role(guarded.paths.operators, "ada", "view")
        yield body[9:]

    async def ask() -> Answer:
        chunked = [("host", HOST), *headers, ("transfer-encoding", "chunked")]
        return await asked(guarded.guard, "POST", "/approvals/prop-1", chunked, slow())

    refused(guarded, anyio.run(ask), 403)


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        pytest.param({}, True, id="a browser that tells nothing"),
        pytest.param({"sec-fetch-mode": "navigate", "sec-fetch-user": "?1"}, True, id="a click"),
        pytest.param({"sec-fetch-mode": "navigate"}, False, id="a page that refreshes itself"),
        pytest.param({"sec-fetch-mode": "no-cors"}, False, id="a picture"),
        pytest.param({"sec-fetch-mode": "cors", "x-pmagent-part": "regions"}, False, id="a script"),
        pytest.param({"x-pmagent-part": "regions"}, False, id="a script, of a browser that tells nothing"),
    ],
)
def test_only_what_a_person_does_keeps_a_session_alive(
    guarded: GuardedConsole, ada: Entered, headers: dict[str, str], kept: bool
) -> None:
    for _ in range(2):
        guarded.clock.now += 4_000.0
        guarded.get("/", ada.cookie, *headers.items())
    assert (guarded.entrance.visitor(ada.cookie) is not None) == kept
    assert len(guarded.probe.reached) == 1 + kept


def test_a_form_keeps_a_session_alive_and_a_live_connection_does_not(guarded: GuardedConsole, ada: Entered) -> None:
    guarded.clock.now += 4_000.0
    assert guarded.post("/x", ada).status == 200
    guarded.clock.now += 4_000.0
    assert guarded.get("/live?after=0", ada.cookie).status == 200
    guarded.clock.now += 4_000.0
    assert guarded.get("/live?after=0", ada.cookie).status == 401


# --- how often -------------------------------------------------------------------------------------------------------


def test_a_session_posts_only_so_often(guarded: GuardedConsole, ada: Entered) -> None:
    other = guarded.entered("ada")
    assert [guarded.post("/x", ada).status for _ in range(31)] == [200] * 30 + [429]
    guarded.probe.reached.clear()
    answer = guarded.post("/x", ada)
    refused(guarded, answer, 429)
    assert answer.header("retry-after") == "1"
    assert guarded.post("/x", other).status == 200, "it is the session's limit"
    guarded.steady.now += 0.5
    assert guarded.post("/x", ada).status == 200


FLOODS = {
    "another form": ("/theme", {"theme": "dark"}),
    "forms that lead nowhere": ("/nowhere", {}),
    "raising the mode": ("/control/mode", {"mode": "EXECUTE"}),
}
STOPS = [
    ("/control/pause", {}), ("/control/disarm", {}), ("/control/end", {"session": "pla-0"}),
    ("/control/mode", {"mode": "OBSERVE"}), ("/sign-out", {}),
]  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
def test_however_often_a_session_has_posted_it_stops_and_signs_out(
    guarded: GuardedConsole, ada: Entered, flood: str
) -> None:
    target, fields = FLOODS[flood]
    assert [guarded.post(target, ada, **fields).status for _ in range(34)] == [200] * 30 + [429] * 4
    assert [guarded.post(stop, ada, **given).status for stop, given in STOPS] == [200] * len(STOPS)
    assert [guarded.post(stop, ada, **given).status for stop, given in STOPS * 8] == [200] * len(STOPS) * 8
    refused_yet = [guarded.post("/control/mode", ada, mode="EXECUTE"), guarded.post("/control/resume", ada)]
    assert [answer.status for answer in refused_yet] == [429, 429]


def test_who_may_only_look_stops_and_signs_out_however_often_they_posted(guarded: GuardedConsole) -> None:
    vic = guarded.entered("vic")
    assert [guarded.post("/theme", vic, theme="dark").status for _ in range(34)] == [200] * 30 + [429] * 4
    stops = ("/control/pause", "/control/disarm", "/sign-out")
    assert [guarded.post(stop, vic).status for stop in stops] == [200, 200, 200]


def test_stopping_uses_up_nothing_of_what_a_session_may_post(guarded: GuardedConsole, ada: Entered) -> None:
    for _ in range(40):
        assert guarded.post("/control/pause", ada).status == 200
    assert guarded.post("/theme", ada, theme="dark").status == 200


def test_a_stop_needs_its_token_however_often_it_is_posted(guarded: GuardedConsole, ada: Entered) -> None:
    for stop, given in STOPS:
        refused(guarded, guarded.send(stop, {**given, "csrf": "x"}, ada.cookie), 403)


def test_a_session_looks_only_so_often(guarded: GuardedConsole, ada: Entered) -> None:
    statuses = [guarded.get("/", ada.cookie).status for _ in range(401)]
    assert statuses == [200] * 400 + [429]
    guarded.steady.now += 1.0
    assert [guarded.get("/", ada.cookie).status for _ in range(41)] == [200] * 40 + [429]


async def _stream(scope: Scope, receive: Receive, send: Send) -> None:
    """A live connection that sends one line and stays."""
    assert (scope["path"], (await receive())["type"]) == ("/live", "http.request")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b"event: at\ndata: {}\n\n", "more_body": True})
    await anyio.sleep_forever()


def test_live_connections_have_seats_and_end_with_their_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_module, "LOOK_SECONDS", 0.01)
    guarded = GuardedConsole(tmp_path, _stream, ada="approve")
    guarded.guard._limits.live.each = 2
    answers: list[Answer] = []

    async def listen(cookie: str) -> None:
        headers = [("host", HOST), *guarded.cookies(cookie)]
        answers.append(await asked(guarded.guard, "GET", "/live?after=0", headers, [b""]))

    async def three() -> None:
        entered = await guarded.entrance.enter(guarded.invited("ada"))
        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, entered.cookie)
                tasks.start_soon(listen, entered.cookie)
                await anyio.wait_all_tasks_blocked()
                await listen(entered.cookie)
                assert [answer.status for answer in answers] == [429]
                await guarded.entrance.sign_out(entered.visitor)

    anyio.run(three)
    assert [answer.status for answer in answers] == [429, 200, 200]
    for answer in answers[1:]:
        assert answer.text.startswith("event: at\n")
        assert answer.text.count("event: over\ndata: {\"why\":\"signed_out\"") == 1
    assert len(guarded.guard._limits.live) == 0


@each("reading", [False, True])
@each("accepted", ["deflate", "identity"])
def test_the_last_word_to_who_is_signed_out_is_in_the_coding_of_all_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepted: str, reading: bool
) -> None:
    """``reading``: it is cut off while it reads the log, with something to say that was not sent yet."""
    monkeypatch.setattr(guard_module, "LOOK_SECONDS", 0.01)
    guarded = GuardedConsole(tmp_path, ada="approve")
    answers: list[Answer] = []

    async def never(_: int) -> Run:
        await anyio.sleep_forever()
        raise AssertionError

    async def listened() -> None:
        streams = Streams(Feed(log_in(tmp_path / "log").reader), anyio.Event())
        streams.feed.look = lambda: None  # type: ignore[method-assign]
        if reading:
            streams.feed.tail = Tail(5, 0, "2026-11-22T09:00:00.000000Z", "")
            streams.feed.after = never  # type: ignore[method-assign,assignment]
        guarded.guard._app = Starlette(routes=streams.routes)
        entered = await guarded.entrance.enter(guarded.invited("ada"))
        headers = [("host", HOST), ("accept-encoding", accepted), *guarded.cookies(entered.cookie)]

        async def staying() -> AsyncIterator[bytes]:
            yield b""
            await anyio.sleep_forever()

        async def listen() -> None:
            answers.append(await asked(guarded.guard, "GET", "/live?after=0", headers, staying()))

        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                await anyio.wait_all_tasks_blocked()
                await guarded.entrance.sign_out(entered.visitor)

    anyio.run(listened)
    (answer,) = answers
    coding = answer.header("content-encoding") or ""
    assert coding == ("deflate" if accepted == "deflate" else "")
    body = zlib.decompress(answer.body) if coding else answer.body
    assert body.startswith(b"retry: ") or reading
    assert body.endswith(b'event: over\ndata: {"why":"signed_out","text":"You are not signed in any more."}\n\n')
