"""The pages of the entrance as a browser sees them: the whole application, over a live workspace that records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal

from pmagent.console.auth import operators, passwords
from pmagent.console.auth.entrance import invite
from pmagent.console.auth.guard import cookie_name
from pmagent.log.source import line_runs
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.consoles import ORIGIN, Console, LiveHost, live_host
from tests.support.entrances import SECRET, cheap_secrets
from tests.support.hostile import CORPUS, assert_harmless


@pytest.fixture(autouse=True)
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Secrets cost nothing."""
    return cheap_secrets(monkeypatch)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live workspace."""
    with live_host(tmp_path_factory.mktemp("workspace")) as host:
        yield host


@pytest.fixture
def browser(live: LiveHost) -> Iterator[Console]:
    """A browser that is not signed in, and an operator Ada with a secret."""
    console = Console(live.workspace)
    paths = console.context.paths
    paths.operators.unlink(missing_ok=True)
    paths.sessions.unlink(missing_ok=True)
    operators.add(paths.operators, "ada", "approve", SECRET)
    with start_blocking_portal() as portal:  # one event loop for all that it asks
        console.client.portal = portal
        yield console


def token(browser: Console, name: str = "ada") -> str:
    """A one-time token."""
    paths = browser.context.paths
    return invite(paths, operators.named(paths.operators, name))


def typed(browser: Console, name: str, secret: str, **more: str) -> Any:
    """The answer to name and secret, typed."""
    fields = {"name": name, "secret": secret, **more}
    return browser.client.post("/sign-in", data=fields, headers={"origin": ORIGIN})


def recorded(live: LiveHost, after: int) -> list[tuple[str, dict[str, Any]]]:
    """The log's events of the console, behind a position."""
    with closing(Layout(live.workspace).store.reader()) as storage:
        told = [event for run, _ in line_runs(storage, after + 1) for event in run]
    return [(event.type, msgspec.json.decode(event.data)) for event in told if event.type.startswith("console.")]


def cookie_of(answer: Any) -> tuple[str, list[str]]:
    """The value that is set, and with what."""
    (header,) = answer.headers.get_list("set-cookie")
    pair, *attributes = header.split("; ")
    return pair.partition("=")[2], sorted(attributes)


def test_the_printed_address_sets_a_cookie_that_no_script_and_no_other_site_gets(browser: Console) -> None:
    answer = browser.get(f"/enter?token={token(browser)}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    value, attributes = cookie_of(answer)
    assert len(value) == 43
    assert attributes == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert list(browser.client.cookies) == [cookie_name(browser.context.workspace)]
    assert browser.get("/help").status_code == 200


def test_an_address_that_lets_nobody_in_says_why_and_what_to_do(browser: Console) -> None:
    used = token(browser)
    assert browser.get(f"/enter?token={used}").status_code == 303
    browser.client.cookies.clear()
    for address in (f"/enter?token={used}", "/enter", "/enter?token=", "/enter?token=x&token=y"):
        answer = browser.get(address)
        assert answer.status_code == 403
        assert "pmagent console" in answer.text
        assert "set-cookie" not in answer.headers
        assert used not in answer.text


def test_who_only_looks_ahead_uses_no_address_up(browser: Console) -> None:
    address = f"/enter?token={token(browser)}"
    assert browser.client.head(address).status_code == 204
    for name in ("sec-purpose", "purpose"):
        assert browser.get(address, headers={name: "prefetch;prerender"}).status_code == 403
    assert browser.client.cookies.get(cookie_name(browser.context.workspace)) is None
    assert browser.get(address).status_code == 303


def test_name_and_secret_lead_back_to_the_page_that_was_asked_for(browser: Console) -> None:
    asked = browser.get("/log?type=oa.&after=3")
    assert asked.headers["location"] == "/sign-in?next=%2Flog%3Ftype%3Doa.%26after%3D3"
    page = browser.page(asked.headers["location"])
    assert 'name="next" value="/log?type=oa.&amp;after=3"' in page
    answer = typed(browser, "ada", SECRET, next="/log?type=oa.&after=3")
    assert (answer.status_code, answer.headers["location"]) == (303, "/log?type=oa.&after=3")
    assert cookie_of(answer)[1] == ["HttpOnly", "Path=/", "SameSite=strict"]


def test_who_is_in_already_is_led_on_from_the_sign_in(browser: Console) -> None:
    browser.get(f"/enter?token={token(browser)}")
    for given, led in (("", "/"), ("?next=/runs", "/runs"), ("?next=//evil.example", "/"), ("?next=/sign-in", "/")):
        answer = browser.get(f"/sign-in{given}")
        assert (answer.status_code, answer.headers["location"]) == (303, led)


@pytest.mark.parametrize(
    "elsewhere",
    ["//evil.example", "/\\evil.example", "http://evil.example/", "javascript:alert(1)", "evil.example", "", "\t//evil",
     "/\t/evil.example", "/ok\r\nSet-Cookie: x=y", "/enter?token=x", "/sign-in", "/" + "a" * 3000],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
def test_signing_in_leads_to_no_other_site(browser: Console, elsewhere: str) -> None:
    answer = typed(browser, "ada", SECRET, next=elsewhere)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_a_refused_sign_in_keeps_the_name_and_forgets_the_secret(browser: Console) -> None:
    answer = typed(browser, "ada", "not the secret at all", next="/runs")
    assert answer.status_code == 403
    assert "Wrong name or secret." in answer.text
    assert 'value="ada"' in answer.text
    assert 'value="/runs"' in answer.text
    assert "not the secret at all" not in answer.text
    assert "set-cookie" not in answer.headers


def test_too_many_tries_are_told_with_a_time(browser: Console) -> None:
    for _ in range(5):
        assert typed(browser, "ada", "not the secret at all").status_code == 403
    answer = typed(browser, "ada", SECRET)
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 30
    assert "too many tries" in answer.text


def test_without_secrets_there_is_no_form_and_the_way_in_is_told(browser: Console) -> None:
    operators.set_secret(browser.context.paths.operators, "ada", None)
    page = browser.page("/sign-in")
    assert 'name="secret"' not in page
    assert "pmagent operators secret" in page


@each("name", CORPUS)
def test_hostile_text_in_a_refused_sign_in_is_shown_harmless(browser: Console, name: str) -> None:
    text = CORPUS[name]
    if any("\ud800" <= char <= "\udfff" for char in text):
        pytest.skip("a form cannot carry it")
    answer = typed(browser, f'"><script>alert(1)</script>{text[:900]}', "a secret that is wrong", next=text[:900])
    assert answer.status_code in (403, 429)
    assert "<script>alert" not in answer.text
    assert_harmless(answer.content)


def test_who_signs_out_is_out_and_the_cookie_is_worth_nothing(browser: Console) -> None:
    browser.get(f"/enter?token={token(browser)}")
    name = cookie_name(browser.context.workspace)
    kept = str(browser.client.cookies[name])
    answer = browser.post("/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert browser.client.cookies.get(name) is None
    browser.client.cookies[name] = kept
    assert browser.get("/help").status_code == 303


def test_signing_out_twice_leads_to_the_sign_in(browser: Console) -> None:
    answer = browser.client.post("/sign-out", data={"csrf": "x"}, headers={"origin": ORIGIN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_a_link_of_another_site_signs_nobody_out_or_in(browser: Console) -> None:
    """Login and logout by forgery: a form elsewhere that posts here."""
    browser.get(f"/enter?token={token(browser)}")
    for path, fields in (("/sign-out", {}), ("/sign-in", {"name": "ada", "secret": SECRET})):
        answer = browser.client.post(path, data=fields, headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    assert browser.get("/help").status_code == 200


def test_a_planted_cookie_does_not_become_a_session(browser: Console) -> None:
    """Fixation, over the whole application."""
    name, planted = cookie_name(browser.context.workspace), "A" * 43
    browser.client.cookies[name] = planted
    value, _ = cookie_of(browser.get(f"/enter?token={token(browser)}"))
    assert value != planted
    browser.client.cookies.clear()
    browser.client.cookies[name] = planted
    assert browser.get("/help").status_code == 303


def test_who_came_who_was_refused_and_who_left_is_in_the_log(live: LiveHost, browser: Console) -> None:
    after = live.position
    browser.get(f"/enter?token={token(browser)}")
    browser.post("/sign-out")
    typed(browser, "ada", "not the secret at all")
    typed(browser, "a secret in the wrong field", "ada")
    typed(browser, "ada", SECRET)
    told = recorded(live, after)
    assert [(type_, data["operator_id"], data["by"]) for type_, data in told] == [
        ("console.signed_in", "ada", "link"), ("console.signed_out", "ada", "session"),
        ("console.refused", "ada", "secret"), ("console.refused", "", "secret"),
        ("console.signed_in", "ada", "secret"),
    ]  # fmt: skip
    assert SECRET not in str(told)
    assert "wrong field" not in str(told)


def test_a_secret_is_not_in_the_log_nor_in_any_file(live: LiveHost, browser: Console) -> None:
    one_time = token(browser)
    value, _ = cookie_of(browser.get(f"/enter?token={one_time}"))
    typed(browser, "ada", SECRET)
    written = b"".join(path.read_bytes() for path in Path(live.workspace).rglob("*") if path.is_file())
    for secret in (one_time, value, SECRET):
        assert secret.encode() not in written
    assert passwords.fits(SECRET, operators.named(browser.context.paths.operators, "ada").secret)


def test_where_nobody_can_record_nobody_enters(tmp_path: Path) -> None:
    with live_host(tmp_path) as host:
        workspace = host.workspace
    console = Console(workspace)
    operators.add(console.context.paths.operators, "ada", "approve", None)
    answer = console.get(f"/enter?token={token(console)}")
    assert answer.status_code == 503
    assert "set-cookie" not in answer.headers
