"""Passkeys in Chromium, with a virtual authenticator: added, used before something is approved, signed in with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from pmagent.workspace.trust import accept
from tests.browser.test_console_approving import APPROVE, fill
from tests.support.screens import Screens, Visit, require_chromium
from tests.support.stations import APPROVING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A station where nobody approves on the console without a passkey."""
    require_chromium()
    station = Station(tmp_path_factory.mktemp("strict"), device=False)
    station.daemon.end()
    config = station.workspace / ".pmagent" / "config.toml"
    config.write_text(config.read_text() + '\n[console]\npasskeys = "required"\n')
    accept(station.workspace)
    station.start()
    yield station
    station.close()


@pytest.fixture
def at_localhost(screens: Screens, strict: Station) -> Iterator[Callable[[], Visit]]:
    """Signs bert in at localhost, by a one-time address."""
    visits: list[Visit] = []

    def entered() -> Visit:
        address = strict.entrance(APPROVING).replace("127.0.0.1", "localhost")
        visits.append(Visit(screens.browser, address.partition("/enter")[0]))
        visits[-1].page.goto(address)
        return visits[-1]

    yield entered
    for visit in visits:
        screens.do(visit.close)


def device(page: Page, *, verified: bool = True) -> None:
    """A virtual authenticator of this window, whose person is verified, or is not."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": verified, "automaticPresenceSimulation": True,
    }  # fmt: skip
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_nothing_is_approved_without_a_passkey_and_one_signs_in_with_it(
    strict: Station, at_localhost: Callable[[], Visit]
) -> None:
    strict.mode("OBSERVE", "SUGGEST")
    proposal = strict.proposed("type: with a passkey")
    page = (visit := at_localhost()).page
    device(page)
    page.goto(f"/approvals/{proposal['proposal_id']}?decide=approve")
    expect(page.get_by_role("button", name=APPROVE)).to_have_count(0)
    page.get_by_role("link", name="Confirm with your passkey").click()
    page.get_by_label("Name of the device that keeps it").fill("bert's laptop")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("link", name="Confirm with your passkey").click()
    expect(page.get_by_role("main")).to_contain_text("bert's laptop")
    page.get_by_role("button", name="Use the passkey").click()
    expect(page).to_have_url(re.compile(r"/approvals/prop-"))
    fill(page, proposal)
    page.get_by_role("button", name=APPROVE).click()
    expect(page.locator("#stands")).to_contain_text("recorded by bert")
    visit.go("/")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator(".menu > summary")).to_contain_text(APPROVING)
    noted = [(one["operator_id"], one["by"]) for one in strict.events("console.signed_in")]
    assert noted[-2:] == [(APPROVING, "link"), (APPROVING, "passkey")]
    assert [one["by"] for one in strict.events("console.passkey_added")] == ["bert's laptop"]


def test_a_person_who_is_not_verified_is_not_let_in(at_localhost: Callable[[], Visit]) -> None:
    page = (visit := at_localhost()).page
    device(page, verified=False)
    visit.go("/sign-in")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("status").filter(has_text="Nothing was sent")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
