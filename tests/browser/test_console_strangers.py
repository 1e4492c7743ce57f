"""A page of another port of this machine, in the operator's own browser: it gets the cookie, and nothing else."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Response, expect

from tests.browser.conftest import Enter
from tests.support.screens import require_chromium
from tests.support.stations import APPROVING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]

LIVE = re.compile(r"live · \d+")
PAGE = """<!doctype html><title>elsewhere</title>
<form method="post" action="HOME/control/pause"><input name="csrf" value="x"></form>
<a href="HOME/help?from=elsewhere">help</a>
<iframe src="HOME/"></iframe><img id="mark" src="HOME/static/mark.svg">
<script>
window.tries = Promise.all([
  fetch("HOME/", {mode: "no-cors", credentials: "include"}),
  fetch("HOME/", {credentials: "include"}),
  fetch("HOME/live?after=0", {mode: "no-cors", credentials: "include"}),
  fetch("HOME/control/pause", {method: "POST", mode: "no-cors", credentials: "include", body: new FormData()}),
].map(asked => asked.then(answer => answer.type, () => "refused")));
</script>"""


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A station without a device."""
    require_chromium()
    made = Station(tmp_path_factory.mktemp("station"), device=False)
    yield made
    made.close()


@contextmanager
def elsewhere(home: str) -> Iterator[tuple[str, list[str]]]:
    """A hostile page on another port of this machine: its address, and the cookies that it was sent."""
    cookies: list[str] = []

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.replace("HOME", home).encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", cookies
        finally:
            server.shutdown()
            thread.join()


def test_a_page_of_another_port_gets_the_cookie_and_nothing_else(station: Station, enter: Enter) -> None:
    visit = enter(APPROVING)
    with elsewhere(visit.home) as (address, cookies):
        window = visit.window()
        statuses: dict[str, int] = {}
        window.on("response", lambda answer: statuses.update({answer.request.resource_type: answer.status}))
        window.goto(address)
        assert "pmagent-" in cookies[0], "browsers tell hosts apart, and not ports"
        assert window.evaluate("window.tries") == ["refused"] * 4
        assert window.evaluate("document.getElementById('mark').naturalWidth") == 0
        assert statuses["document"] == 403, "the frame"
        with window.expect_navigation():
            window.evaluate("document.forms[0].submit()")
        expect(window.locator("body")).to_contain_text("made by a page of another site")
        assert station.events("control.pause_requested") == []
        window.close()
    assert visit.go("/") == 200
    assert set(visit.strays) <= {address, f"{address}favicon.ico"}
    assert all(fault.startswith("console: ") for fault in visit.faults), "the hostile page's own"
    visit.strays.clear()
    visit.faults.clear()


def test_a_link_on_another_site_leads_to_its_page(enter: Enter) -> None:
    """For a browser localhost is another site than 127.0.0.1: the strict cookie comes with the second try."""
    visit = enter(APPROVING)
    answers: list[Response] = []

    def heard(answer: Response) -> None:  # it asks the browser nothing: the test would go on meanwhile
        if "/help" in answer.url:
            answers.append(answer)

    with elsewhere(visit.home) as (address, _):
        window = visit.window()
        window.on("response", heard)
        window.goto(address.replace("127.0.0.1", "localhost"))
        window.get_by_role("link", name="help").click()
        expect(window.get_by_role("heading", level=1)).to_have_text("Help")
        assert window.url == f"{visit.home}/help?from=elsewhere"
        assert ["cookie" in answer.request.all_headers() for answer in answers] == [False, True]
        window.close()
    visit.strays.clear()
    visit.faults.clear()


def test_an_address_works_once_and_signing_out_ends_every_window(station: Station, enter: Enter) -> None:
    visit = enter(APPROVING)
    expect(visit.page.locator("#connection")).to_have_text(LIVE)
    visit.page.evaluate("document.body.dataset.before = ''")
    used = station.entrance(APPROVING)
    second = visit.window()
    second.goto(used)
    expect(second.get_by_role("heading", level=1)).to_have_text("Now")
    expect(visit.page.locator("body[data-before]")).to_have_count(0)  # its stream was the old session's: it comes anew
    expect(visit.page.locator("#connection")).to_have_text(LIVE)
    assert visit.go("/help") == 200, "the window that was there has the new session"
    stranger = enter(APPROVING)
    stranger.page.goto("about:blank")  # its page would go to sign in by itself
    stranger.context.clear_cookies()
    stranger.page.goto(used)
    expect(stranger.page.get_by_role("heading", level=1)).to_have_text("This address lets nobody in")
    second.locator("details.menu summary").click()
    second.get_by_role("button", name="Sign out").click()
    expect(second.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(visit.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    visit.go("/runs")
    expect(visit.page.get_by_role("heading", level=1)).to_have_text("Sign in")
