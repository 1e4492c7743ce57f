"""The console's news for operators, in a real browser: alerts, notifications, and a card's facts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Enter
from tests.browser.test_console_approving import APPROVE, fill, open_card
from tests.support.stations import APPROVING, ASKING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]

NOTIFIED = """
window.Notification = class {
  static permission = "granted";
  static requestPermission() { return Promise.resolve("granted"); }
  constructor(title, options) { document.body.dataset.noticed = `${document.body.dataset.noticed ?? ""}${title};`; }
};
"""
"""Shows no notification, but keeps what would be shown: this browser has no desktop."""


def test_a_browser_notifies_of_what_opens_once_where_somebody_asked_for_it(enter: Enter, station: Station) -> None:
    page = enter().page
    page.add_init_script(NOTIFIED)
    page.goto(page.url.partition("/enter")[0].rstrip("/") + "/alerts")
    button = page.get_by_role("button", name="Notify me in this browser")
    expect(button).to_have_attribute("aria-pressed", "false")
    station.pmagent("pla", "mode", "SUGGEST")
    station.pmagent("pla", "propose", "type: before")
    expect(page.locator("#waiting")).to_have_attribute("data-count", "1")
    expect(page.locator("body[data-noticed]")).to_have_count(0)  # nobody asked for any
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    station.pmagent("pla", "reject", "--reason", "enough")
    station.pmagent("pla", "propose", "type: hello")
    expect(page.locator("body")).to_have_attribute("data-noticed", "Typing waits for a decision;")
    page.reload()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("body[data-noticed]")).to_have_count(0)  # it was told already
    station.pmagent("pla", "end")


def fact(page: Page, name: str) -> Locator:
    """A fact of the page, by its name."""
    return page.locator("dl.facts div").filter(has=page.get_by_text(name, exact=True))


def test_a_card_names_machine_risk_and_credentials_as_they_are_and_its_end_once(
    station: Station, enter: Enter
) -> None:
    station.settings(layout="us", name="rack-3", credentials="acknowledge")
    station.armed()
    page, main = (visit := enter(APPROVING)).page, visit.page.get_by_role("main")
    goals = ("type: password: hunter2", "high"), ('type: "rm -rf ./old\\n"', "high"), ('type: "ls\\n"', "medium")
    for goal, risk in goals:
        proposal = station.proposed(goal)
        visit.go(f"/approvals/{proposal['proposal_id']}")
        expect(main).to_contain_text(f"{risk} risk")
        for name, value in (("Machine", "rack-3"), ("Keyboard layout", "us")):
            expect(fact(page, name)).to_have_text(re.compile(f"{name}\\s*{value}"))
        if "hunter2" in goal:
            expect(fact(page, "Credentials")).to_have_text(re.compile(r"Credentials\s*password"))
            expect(main).not_to_contain_text("known secret")
        if risk == "high":
            station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "another one")
    fill(open_card(page, proposal), proposal)
    page.get_by_role("button", name=APPROVE).click()
    ended = page.locator("#stands .notice")
    expect(ended).to_contain_text("It was typed")
    expect(ended).to_have_text(re.compile(r"^\s*It was typed\s*[A-Z][^.]*\. [A-Z][^.]*\.\s*$"))
    station.settings()


def test_an_unknown_outcome_heads_the_inbox_until_it_is_acknowledged_and_a_typing_error_is_no_alert(
    station: Station, enter: Enter
) -> None:
    assert station.device is not None
    station.settings()
    station.armed()
    before = station.document("alerts")["counts"]
    station.pmagent("pla", "propose", "type: Gr\u00fc\u00dfe", "--operator", ASKING, expect=1)
    assert station.document("alerts")["counts"] == before
    proposal = station.proposed("type: " + "abcdefghij" * 90)
    end = station.position()
    station.pmagent("pla", "approve", proposal["proposal_id"], "--digest", proposal["digest"], "--operator", APPROVING,
                    "--no-wait")  # fmt: skip
    station.until("hid.commit_requested", after=end)
    station.device.do("reset")
    station.until("hid.outcome_unknown", after=end)
    visit = enter(APPROVING)
    page = visit.page
    visit.go("/alerts")
    opened = page.get_by_role("region", name="Open alerts")
    first = opened.get_by_role("row").nth(1)
    expect(first).to_contain_text("Nobody knows how much was typed")
    expect(page).to_have_title(re.compile(r"^\(\d+\) Alerts"))
    note = page.get_by_label("Note: how it was dealt with")
    note.fill("looked: half of it")
    page.get_by_role("button", name="Acknowledge marked alerts").click()
    expect(page.get_by_role("alert").filter(has_text="mark 1 to 50 alerts")).to_be_visible()
    expect(note).to_have_value("looked: half of it")
    first.get_by_role("checkbox").check()
    page.get_by_role("button", name="Acknowledge marked alerts").click()
    done = page.get_by_role("region", name="Acknowledged alerts").get_by_role("row").nth(1)
    expect(done).to_contain_text("looked: half of it")
    expect(done).to_contain_text(APPROVING)
    expect(opened).not_to_contain_text("Nobody knows how much was typed")
