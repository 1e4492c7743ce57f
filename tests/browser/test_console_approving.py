"""Approving on the console, in a real browser, on a device that is pretended: what is shown is what is typed, once. All
that needs no browser: tests/unit/console/approvals/test_approvals_pages.py."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Enter
from tests.support.effort import NIGHT, some
from tests.support.screens import NARROW
from tests.support.stations import APPROVING, ASKING, Station

APPROVE = re.compile(r"^Approve(, record only| and type now on .+)$")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]


def typed(station: Station) -> str:
    """The text that the machine has got so far."""
    assert station.device is not None
    return station.device.typed


def open_card(page: Page, proposal: dict[str, Any]) -> Page:
    """The card of a proposal, with the form that approves it."""
    page.goto(f"/approvals/{proposal['proposal_id']}")
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_role("button", name=APPROVE)).to_be_visible()
    return page


def fill(page: Page, proposal: dict[str, Any]) -> None:
    """Say that it was read, and type the digest's beginning where that is wanted."""
    page.get_by_role("checkbox", name="I have read").check()
    first = page.get_by_label("first 6 characters of the digest")
    if first.count():
        first.fill(proposal["digest"][:6])


def decisions(station: Station, proposal: dict[str, Any]) -> list[str]:
    """The operators whose request to approve it was followed."""
    return [
        event["operator_id"] for event in station.events("pla.approved")
        if event["proposal_id"] == proposal["proposal_id"]
    ]  # fmt: skip


def test_what_one_asks_for_another_approves_and_it_is_typed(station: Station, enter: Enter) -> None:
    station.armed()
    before = typed(station)
    proposal = station.proposed('type: "ls -la\\n"', "--why", "to see what is there")
    visit = enter(APPROVING)
    visit.go("/approvals")
    visit.page.get_by_role("link", name="ls", exact=False).first.click()
    page = open_card(visit.page, proposal)
    expect(page.locator("pre.bytes")).to_have_text("ls·-la⏎")
    expect(page.locator("#why")).to_contain_text("to see what is there")
    fill(page, proposal)
    page.get_by_role("button", name=APPROVE).click()
    expect(page.locator("#stands")).to_contain_text("executed")
    assert typed(station) == before + "ls -la\n"
    assert decisions(station, proposal) == [APPROVING]
    (said,) = [event for event in station.events("pla.decision_requested") if event["digest"] == proposal["digest"]]
    assert (said["channel"], said["operator_id"]) == ("console", APPROVING)


def test_the_content_has_the_focus_and_enter_approves_nothing(station: Station, enter: Enter) -> None:
    station.armed()
    proposal = station.proposed('type: "pwd\\n"')
    visit = enter(APPROVING)
    visit.go(f"/approvals/{proposal['proposal_id']}")
    page = visit.page
    assert page.evaluate("document.activeElement.closest('#content') !== null")
    page.keyboard.press("Enter")
    open_card(visit.page, proposal)
    for field in page.locator("#decide input:not([type=hidden])").all():
        field.focus()
        page.keyboard.press("Enter")
    for key in ("a", "A", "y", "Y", "o", "Control+Enter"):
        page.locator("body").press(key)
    expect(page.get_by_role("button", name=APPROVE)).to_be_visible()
    assert decisions(station, proposal) == []


def test_pressed_twice_it_is_typed_once(station: Station, enter: Enter) -> None:
    station.armed()
    before = typed(station)
    proposal = station.proposed("type: echo once")
    page = open_card(enter(APPROVING).page, proposal)
    fill(page, proposal)
    page.evaluate(
        "() => { const f = document.querySelector('#decide form');"
        " fetch(f.action, {method: 'POST', body: new URLSearchParams(new FormData(f)), redirect: 'manual'}); }"
    )
    page.get_by_role("button", name=APPROVE).dblclick()
    expect(page.locator("#stands")).to_contain_text("executed")
    assert typed(station) == before + "echo once"
    assert decisions(station, proposal) == [APPROVING]


def frozen_form(page: Page) -> str:
    """Everything of the form: its sentence, its hidden fields, its button."""
    return str(page.locator("#decide form").evaluate("form => form.outerHTML"))


OPENED = [
    (change, touched) for change in ("raised", "lowered") for touched in (False, True)
    if NIGHT or (change == "raised") == touched  # by day each value, and half of all
]  # fmt: skip


@pytest.mark.parametrize(("change", "touched"), OPENED, ids=str)
def test_an_open_form_stays_as_it_was_opened_and_approves_nothing_once_the_mode_has_changed(
    station: Station, enter: Enter, *, change: str, touched: bool
) -> None:
    station.armed()
    was, now = ("SUGGEST", "EXECUTE") if change == "raised" else ("EXECUTE", "SUGGEST")
    if change == "raised":
        station.mode("SUGGEST")
    before = typed(station)
    proposal = station.proposed(f"type: echo {change} {touched}")
    page = open_card(enter(APPROVING).page, proposal)
    if touched:
        fill(page, proposal)
    form, weight = frozen_form(page), page.locator("#weight").inner_html()
    station.mode(now)
    if change == "raised":
        station.pmagent("pla", "arm")
    told = page.get_by_role("status").filter(has_text="The mode has changed")
    expect(told).to_contain_text(f"mode: {was} when the form was opened, {now} now")
    assert page.locator("#decide form [role=status]").count() == 0, "beside the form, not in it"
    assert (frozen_form(page), page.locator("#weight").inner_html()) == (form, weight)
    if not touched:
        fill(page, proposal)
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        page.get_by_role("button", name=APPROVE).click()
    assert sent.value.status == 409
    difference = page.get_by_role("table", name="What you saw, and how it is now")
    expect(difference.get_by_role("row", name=f"mode {was} {now}")).to_be_visible()
    assert (typed(station), decisions(station, proposal)) == (before, [])
    page.get_by_role("link", name="Look at it again").click()
    box = page.get_by_role("checkbox", name="I have read")
    expect(box).not_to_be_checked()
    fill(page, proposal)
    words = "Approve and type now on" if now == "EXECUTE" else "Approve, record only"
    page.get_by_role("button", name=words).click()
    station.until("pla.proposal_closed", after=proposal["position"])
    assert decisions(station, proposal) == [APPROVING]
    assert (typed(station) != before) == (now == "EXECUTE")


def test_in_two_windows_each_form_stays_and_a_reload_has_none(station: Station, enter: Enter) -> None:
    station.armed()
    station.mode("SUGGEST")
    before = typed(station)
    proposal = station.proposed("type: echo two windows")
    visit = enter(APPROVING)
    page, other = open_card(visit.page, proposal), open_card(visit.window(), proposal)
    copied = visit.window()
    form = frozen_form(other)
    station.mode("EXECUTE")
    station.pmagent("pla", "arm")
    for one in (page, other):
        expect(one.get_by_role("status").filter(has_text="The mode has changed")).to_be_visible()
    copied.goto(page.url)
    page.reload()
    for one in (page, copied):
        expect(one.get_by_role("button", name=APPROVE)).to_have_count(0)
        expect(one.locator("#decide")).to_contain_text("counts for nothing")
    assert frozen_form(other) == form
    fill(other, proposal)
    other.get_by_role("button", name=APPROVE).click()
    expect(other.locator("main")).to_contain_text("Nothing was approved")
    assert (typed(station), decisions(station, proposal)) == (before, [])


@pytest.mark.parametrize("touched", some([False, True], 1), ids=str)
def test_a_form_on_a_proposal_that_another_has_replaced_says_so_and_stays(
    station: Station, enter: Enter, *, touched: bool
) -> None:
    station.armed()
    before = typed(station)
    proposal = station.proposed(f"type: echo first {touched}")
    page = open_card(enter(APPROVING).page, proposal)
    if touched:
        fill(page, proposal)
    form = frozen_form(page)
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "another comes")
    again = station.proposed(f"type: echo second {touched}")
    expect(page.get_by_role("status").filter(has_text="It is not open any more")).to_contain_text("rejected")
    assert frozen_form(page) == form
    if not touched:
        fill(page, proposal)
    with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
        page.get_by_role("button", name=APPROVE).click()
    assert sent.value.status == 409
    assert (typed(station), decisions(station, proposal), decisions(station, again)) == (before, [], [])


def test_a_rejection_needs_a_reason(station: Station, enter: Enter) -> None:
    station.armed()
    proposal = station.proposed("type: echo no")
    visit = enter(APPROVING)
    page = visit.page
    visit.go(f"/approvals/{proposal['proposal_id']}")
    page.get_by_role("link", name="Reject…").click()
    page.get_by_role("button", name="Reject it").click()
    assert station.document("pla", "show", proposal["proposal_id"])["stands"] == "open"
    page.get_by_role("textbox", name="Why not?").fill("the wrong <b>window</b>")
    page.get_by_role("button", name="Reject it").click()
    expect(page.locator("#stands")).to_contain_text("rejected")
    expect(page.locator("#decide")).to_contain_text("the wrong <b>window</b>")


def test_without_scripts_it_is_approved_and_typed_too(station: Station, enter: Enter) -> None:
    station.armed()
    before = typed(station)
    proposal = station.proposed('type: "date\\n"')
    page = open_card(enter(APPROVING, java_script_enabled=False).page, proposal)
    fill(page, proposal)
    page.get_by_role("button", name=APPROVE).click()
    station.until("pla.proposal_closed", after=proposal["position"])
    page.reload()
    expect(page.locator("#stands")).to_contain_text("executed")
    assert typed(station) == before + "date\n"


def test_with_the_keyboard_alone_it_is_found_read_and_approved(station: Station, enter: Enter) -> None:
    station.armed()
    before = typed(station)
    proposal = station.proposed("type: echo keys")
    visit = enter(APPROVING)
    visit.stop_clock()
    visit.go("/")
    page = visit.page
    press(page, "g", "a")
    page.wait_for_url("**/approvals")
    press(page, "j", "Enter")
    page.wait_for_url(f"**/approvals/{proposal['proposal_id']}")
    tab_to(page, "Approve…")
    press(page, "Enter")
    page.wait_for_url("**decide=approve**")
    tab_to(page, "I have read exactly")
    press(page, "Space")
    if page.get_by_label("first 6 characters of the digest").count():
        press(page, "Tab")
        page.keyboard.type(proposal["digest"][:6])
    tab_to(page, "Approve and type now on ")
    press(page, "Enter")
    expect(page.locator("#stands")).to_contain_text("executed")
    assert typed(station) == before + "echo keys"


def press(page: Page, *keys: str) -> None:
    """Press one after the other."""
    for key in keys:
        page.keyboard.press(key)


def tab_to(page: Page, name: str) -> None:
    """Press Tab until something called so has the focus; everything passed on the way can be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        where = page.evaluate(
            "() => { const at = document.activeElement; const box = at.getBoundingClientRect();"
            " return [(at.labels?.[0] ?? at).textContent.trim(), box.width > 0 && box.height > 0,"
            " getComputedStyle(at).outlineStyle !== 'none']; }"
        )
        assert where[1], f"the focus is on something that nobody sees: {where[0]}"
        assert where[2], f"nobody sees that the focus is there: {where[0]}"
        if where[0].startswith(name):
            return
    raise AssertionError(f"Tab never comes to {name}")


@pytest.mark.parametrize("ahead", some([-3600, 3600], 1))
def test_a_clock_that_goes_wrong_says_nothing_of_when_it_expires(station: Station, enter: Enter, ahead: int) -> None:
    station.armed()
    proposal = station.proposed("type: echo later")
    visit = enter(APPROVING)
    visit.context.add_init_script(f"const right = Date.now; Date.now = () => right() + {ahead * 1000};")
    visit.go(f"/approvals/{proposal['proposal_id']}")
    expect(visit.page.locator("#stands time.until")).to_have_text(re.compile(r"in 4m \d\ds"))
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "seen")


def test_while_it_types_the_text_says_how_far_and_one_key_ends_it(station: Station, enter: Enter) -> None:
    station.armed()
    text = "echo " + "abcdefghij" * 60
    proposal = station.proposed(f"type: {text}")
    page = open_card(enter(APPROVING).page, proposal)
    fill(page, proposal)
    page.get_by_role("button", name=APPROVE).click()
    stop = page.get_by_role("button", name="Stop typing")
    expect(stop).to_be_in_viewport()
    expect(page.locator("#progress")).to_contain_text(re.compile(r"\d+ of 605 characters typed"))
    already = page.locator("pre.bytes .sent").first
    expect(already).to_contain_text("echo·abc")
    page.keyboard.press("Escape")
    expect(page.get_by_role("main")).to_contain_text("It was disarmed while it typed")
    assert "echo abc" in typed(station)
    assert not typed(station).endswith(text)
    said = page.locator("#progress").inner_text()
    assert re.search(r"[1-9]\d* of 605 characters typed", said), "what is missing is seen afterwards, too"


@pytest.mark.parametrize("size", some([(1440, 900), NARROW], 1), ids=str)
def test_what_it_does_and_the_decision_are_on_the_first_screen(
    station: Station, enter: Enter, size: tuple[int, int]
) -> None:
    station.armed()
    proposal = station.proposed('type: "cd /srv\\nrm -rf ./old\\nls\\n"', "--why", "the disk is full " * 20)
    page = enter(APPROVING, size=size).page
    page.goto(f"/approvals/{proposal['proposal_id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text("Type cd /srv⏎ …")
    for seen in (page.get_by_role("link", name="Approve…"), page.get_by_role("link", name="Reject…"),
                 page.get_by_text("Presses Enter 3 times: runs or sends 3 lines on "), page.locator("mark.deed")):
        expect(seen).to_be_in_viewport()
    expect(page.locator("mark.deed")).to_have_text(re.compile("rm"))
    assert page.locator("#screen").bounding_box()["y"] < page.locator("#why").bounding_box()["y"]  # type: ignore[index]
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_role("heading", name="Decide")).to_be_in_viewport()
    covered = page.locator("header.top").bounding_box()
    heading = page.get_by_role("heading", name="Decide").bounding_box()
    assert covered
    assert heading
    assert heading["y"] >= covered["y"] + covered["height"], "nothing lies over what was jumped to"
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "tidy up")


@pytest.mark.parametrize("scripts", some([True, False], 1), ids=str)
def test_actions_are_proposed_from_the_page_and_worded_alike_everywhere(
    station: Station, enter: Enter, *, scripts: bool
) -> None:
    station.mode("OBSERVE")
    visit = enter(ASKING, java_script_enabled=scripts)
    page = visit.page
    visit.go("/approvals")
    page.get_by_role("link", name="Propose an action…").click()
    page.get_by_role("button", name="Switch to SUGGEST").click()
    page.get_by_label("Action").select_option(label="Press keys")
    page.get_by_label("Text, keys, movement or button").fill("ctrl+alt+remove")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("alert").last).to_contain_text("key 3 of 3")
    expect(page.get_by_label("Text, keys, movement or button")).to_have_value("ctrl+alt+remove")
    page.get_by_label("Text, keys, movement or button").fill("ctrl+alt+delete")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Press ctrl + alt + delete")
    session = station.document("pla", "status")["session"]["session_id"]
    visit.go(f"/sessions/{session}")
    expect(page.get_by_role("table", name="Proposals")).to_contain_text("Press ctrl + alt + delete")
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "another one")
    visit.go("/approvals/propose")
    page.get_by_label("Text, keys, movement or button").fill('echo "a\\b"\nls\n')
    page.get_by_label("Why").fill("to see\tit")
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("pre.bytes")).to_have_text('echo·"a\\b"⏎\nls⏎')
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "tidy up")
    visit.go("/approvals/propose")
    page.get_by_role("button", name="Take a screenshot").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("No screenshot was taken")


def test_the_kill_switch_is_ready_or_hit_and_only_the_device_is_armed(station: Station, enter: Enter) -> None:
    assert station.device is not None
    station.armed()
    visit = enter(APPROVING)
    device = visit.page.locator("#pla-device")
    expect(device).to_contain_text("kill switch: ready")
    device.locator("dfn", has_text="Lease").focus()
    expect(device.get_by_role("tooltip", name="unless it is renewed: an armed device 2 s")).to_be_visible()
    end = station.position()
    station.device.do("kill")
    station.until("hid.reported", "data.kill_switch_state=DISABLED", after=end)
    expect(device).to_contain_text("kill switch hit: nothing can be typed")
    for text in (station.pmagent("pla", "status").text, station.pmagent("log", "tail", "-n", "40").text,
                 station.pmagent("pla", "mode", "SUGGEST", "--operator", ASKING).text,
                 station.pmagent("pla", "mode", "EXECUTE", "--operator", ASKING, expect=1).text):
        assert not re.search(r"switch (is )?(ARMED|DISABLED)", text), text
    assert "hit: nothing can be typed" in station.pmagent("pla", "status").text
    visit.page.get_by_role("button", name="Switch to EXECUTE").click()
    expect(visit.page.get_by_role("main")).to_contain_text("the kill switch is hit: nothing can be typed")
    station.device.do("restore")
    station.device.do("reset")
