"""Tasks of operators within three clicks from the first page; parts that need a script: the palette, the graph."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Enter
from tests.browser.test_console_approving import APPROVE
from tests.support.furnished import RETRIES, Furnished
from tests.support.sandboxes import OBSTACLE
from tests.support.screens import NARROW, SIZE
from tests.support.started import in_workspace
from tests.support.stations import APPROVING, ASKING, LOOKING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]

CLICKS_MAX = 3


@pytest.fixture(scope="module")
def runs(station: Station) -> list[str]:
    """Two runs that failed, the newest first."""
    if OBSTACLE:
        pytest.skip(OBSTACLE)
    furnished = Furnished(station)
    furnished.runs()
    furnished.runs()
    return [one["run_id"] for one in station.document("runs")["runs"]]


@pytest.fixture(scope="module")
def long_run(station: Station) -> str:
    """A run of 120 tasks, some of which failed."""
    if OBSTACLE:
        pytest.skip(OBSTACLE)
    in_workspace(station.workspace, "", RETRIES)
    plan = station.workspace / "long.json"
    plan.write_text(json.dumps([
        {"task_id": f"service-{n}", "intent": f"Test the service {n} against its neighbours", "tools": ["sh"],
         "inputs": {"args": ["-c", f"exit {int(n % 8 == 3)}"]}, "constraints": {"max_retries": 0}}
        for n in range(120)
    ]))  # fmt: skip
    station.process("run", "Test all services", "--plan", str(plan), expect=1)
    return str(station.document("runs")["runs"][0]["run_id"])


class Way:
    """From the first page on; counts what is pressed."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        page.goto("/")

    def press(self, place: Locator) -> None:
        """One click more. Raises AssertionError when it is one too many."""
        self.clicks += 1
        assert self.clicks <= CLICKS_MAX
        place.click()


def test_why_a_run_failed_is_one_click_away(enter: Enter, runs: list[str]) -> None:
    way = Way(enter(LOOKING).page)
    way.press(way.page.locator("#recent").get_by_role("link", name=runs[0][:8]))
    expect(way.page.get_by_role("heading", name="Failures")).to_be_in_viewport()
    expect(way.page.locator("#run-failures")).to_contain_text("docs/old.md: no such page")


def test_a_request_is_approved_in_three_clicks_and_then_it_is_seen_who_approved_it(
    enter: Enter, station: Station
) -> None:
    station.mode("OBSERVE", "SUGGEST")
    proposal = station.proposed("type: three clicks", by=ASKING)
    way = Way(enter(APPROVING).page)
    way.press(way.page.get_by_role("link", name="Decide…"))
    way.press(way.page.get_by_role("checkbox", name="I have read"))
    way.press(way.page.get_by_role("button", name=APPROVE))
    expect(way.page.locator("#stands")).to_contain_text("recorded by bert")
    after = Way(way.page)
    after.press(after.page.get_by_role("navigation", name="Sections").get_by_role("link", name="Approvals"))
    row = after.page.get_by_role("row", name=re.compile("three clicks"))
    expect(row).to_contain_text(f"{APPROVING} over console")
    assert station.document("pla", "show", proposal["proposal_id"])["decided_by"] == APPROVING


def test_everything_is_stopped_with_one_click(enter: Enter, station: Station) -> None:
    way = Way(enter(LOOKING).page)
    way.press(way.page.locator("#standing").get_by_role("button", name="Stop"))
    expect(way.page.locator("#standing")).to_contain_text("paused")
    station.pmagent("resume", "--operator", ASKING)


def test_two_runs_are_compared_in_two_clicks(enter: Enter, runs: list[str]) -> None:
    way = Way(enter(LOOKING).page)
    way.press(way.page.locator("#recent").get_by_role("link", name=runs[0][:8]))
    way.press(way.page.get_by_role("link", name="with the run before"))
    expect(way.page.get_by_role("heading", level=1)).to_have_text(f"Runs {runs[1][:8]} and {runs[0][:8]}")


@pytest.mark.parametrize("size", [NARROW, SIZE], ids=["narrow", "wide"])
def test_120_tasks_take_two_screens_before_they_are_unfolded(
    enter: Enter, long_run: str, size: tuple[int, int]
) -> None:
    page = enter(LOOKING, size=size).page
    page.goto(f"/runs/{long_run}?tab=tasks")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2 * size[1]
    expect(page.get_by_role("link", name="service-3", exact=True)).to_be_visible()
    last = page.get_by_role("link", name="service-119", exact=True)
    expect(last).to_be_hidden()
    page.locator("#more-failed > summary").click()
    page.locator("#tasks-done > summary").click()
    expect(page.locator("#tasks tbody tr")).to_have_count(120)
    for row in (page.get_by_role("link", name="service-118", exact=True), last):
        expect(row).to_be_visible()


def test_the_palette_opens_anywhere_finds_as_one_types_and_leads_there(enter: Enter, runs: list[str]) -> None:
    page = enter(LOOKING).page
    page.goto("/integrity")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search everything")
    expect(palette.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type(runs[0][:8])
    expect(palette.get_by_role("link", name="Check the docs").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("audits")
    expect(palette.get_by_role("link", name="Audits", exact=True)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("link", name="Audits", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Audits")


def test_a_graph_is_fitted_grows_and_marks_what_one_types(enter: Enter, runs: list[str]) -> None:
    page = enter(LOOKING).page
    page.goto(f"/runs/{runs[0]}?tab=graph")
    picture = page.locator("#run-order svg").first
    before = picture.bounding_box()
    page.locator("figure.drawing").focus()
    page.keyboard.press("+")
    after = picture.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    page.keyboard.press("0")
    figure = page.locator("figure.drawing").bounding_box()
    fitted = picture.bounding_box()
    assert figure is not None
    assert fitted is not None
    assert fitted["width"] <= figure["width"]
    page.get_by_label("Show tasks with").fill("links")
    expect(page.locator("svg .node:not(.dim)")).to_have_count(1)


def test_rows_stand_close_where_somebody_wants_that(enter: Enter, runs: list[str]) -> None:
    assert runs
    page = enter(LOOKING, java_script_enabled=False).page
    page.goto("/runs")
    roomy = page.locator("tbody tr").first.bounding_box()
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Compact").click()
    close = page.locator("tbody tr").first.bounding_box()
    assert roomy is not None
    assert close is not None
    assert close["height"] < roomy["height"]
