"""The pages that read the log, behind the guard and beside a live workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.console_pages import Page, assert_harmless
from tests.support.consoles import Console, LiveHost, console, live_host

PAGES = (
    "/log", "/log?type=log.*&newest=last", "/log/1", "/log/2?limit=5", "/sessions", "/sessions?kind=oa", "/integrity",
)  # fmt: skip


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live workspace."""
    with live_host(fresh_example(tmp_path_factory.mktemp("reading") / "w")) as made:
        yield made


@pytest.fixture(scope="module")
def vera(host: LiveHost) -> Iterator[Console]:
    """Somebody who may look."""
    with console(host.workspace, "vera", "view") as made:
        yield made


@each("address", PAGES)
def test_who_may_look_sees_every_page_with_the_command_for_it(vera: Console, address: str) -> None:
    page = Page(vera.page(address))
    assert_harmless(page)
    assert page.copied
    assert page.copied[0].startswith("pmagent ")
    assert "daemon not reachable" not in page.text


def test_a_session_of_the_oa_that_has_just_booted_is_there(host: LiveHost, vera: Console) -> None:
    answer = host.perform("boot.oa")
    assert answer.exit_code == 0, answer.document
    (address,) = Page(vera.page("/sessions?kind=oa")).links("/sessions/oa-session-")
    page = Page(vera.page(address))
    assert_harmless(page)
    assert "open" in page.text
    assert str(answer.document["oa_boot_envelope"]["kernel"]["phase"]) in page.text


def test_a_session_of_the_pla_that_has_just_begun_is_there(host: LiveHost, vera: Console) -> None:
    answer = host.perform("pla.mode", mode="SUGGEST", operator="ada", channel="cli")
    assert answer.exit_code == 0, answer.document
    (address,) = Page(vera.page("/sessions")).links("/sessions/pla-")
    page = Page(vera.page(address))
    assert_harmless(page)
    assert "open" in page.text
    assert "not intact" not in page.text
    assert "SUGGEST" in page.text


def test_what_is_handed_out_is_never_shown_by_a_browser(vera: Console) -> None:
    answer = vera.get("/log/1/raw")
    assert answer.status_code == 200
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_the_log_page_follows_from_where_it_was_made(host: LiveHost, vera: Console) -> None:
    page = Page(vera.page("/log"))
    position = int(page.one("body")["data-position"])
    newest = max(int(row["id"][1:]) for row in page.all("tr") if "id" in row)
    assert newest == position <= host.position
    assert page.one("tbody")["data-tail"] == "/live/log"


def test_an_old_event_is_not_looked_at_again_by_itself(
    host: LiveHost, vera: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.perform("pla.mode", mode="OBSERVE", operator="ada", channel="cli")
    (row, *_) = [row for row in Page(vera.page("/log?type=pla.mode_*")).all("tr") if "id" in row]
    address = f"/log/{row['id'][1:]}"
    assert Page(vera.page(address)).one("body")["data-live"] == "pla."
    monkeypatch.setattr("pmagent.console.pages.views.event.FRESH_EVENTS", -1)
    assert not Page(vera.page(address)).one("body")["data-live"]
