"""A run that is followed in a real browser: nothing is reloaded, and it is ended where it is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Enter
from tests.support.sandboxes import needs_sandbox
from tests.support.stations import APPROVING, LOOKING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens"), needs_sandbox]

PLAN = """
tasks:
  - {task_id: first, intent: say so, tools: [echo], inputs: {args: [hello]}}
  - {task_id: second, intent: wait, tools: [sleep], depends_on: [first], inputs: {args: ["600"]}}
  - {task_id: third, intent: never, tools: [echo], depends_on: [second]}
"""
CONFIG = 'version: "1.0"\nwhitelist_tools: [echo, sleep]\n'


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A plan and a configuration, as files."""
    folder = tmp_path_factory.mktemp("given")
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "config.yaml").write_text(CONFIG)
    return str(folder / "plan.yaml"), str(folder / "config.yaml")


def detached(station: Station, intent: str, given: tuple[str, str], *more: str) -> str:
    """Ask for a run, which the daemon carries; its id."""
    plan, config = given
    command = ("run", intent, "--plan", plan, "--config", config, "--detach", "--format", "json")
    return str(station.process(*command, "--trust-workspace", *more).document["run_id"])


def test_a_run_is_followed_and_ended_where_it_is_looked_at(
    enter: Enter, station: Station, given: tuple[str, str]
) -> None:
    looking, approving = enter(LOOKING), enter(APPROVING)
    looking.go("/runs")
    run = detached(station, "watch me", given)
    row = looking.page.locator("#runs tr", has_text=run[:8])
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("1 of 3")
    approving.go(f"/runs/{run}")
    page = approving.page
    expect(page.locator("#run-order a[aria-label='first: done']")).not_to_have_count(0)
    expect(page.locator("#run-order .bar.running")).to_have_count(1)
    page.evaluate("window.stays = true")
    page.get_by_text("Cancel this run").click()
    page.get_by_label("Why").fill("seen enough")
    looking.go(f"/runs/{run}")
    expect(looking.page.get_by_text("Cancel this run")).to_have_count(0)
    looking.page.evaluate("window.stays = true")
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#run-state")).to_contain_text(f"{APPROVING} (console) wanted it to end: seen enough")
    expect(looking.page.locator("#run-state")).to_contain_text("cancelled")
    expect(looking.page.locator("#run-order .bar.running")).to_have_count(0)
    assert looking.page.evaluate("window.stays") is True, "the page was never loaded anew"


def test_an_artifact_is_taken_away_as_a_file(
    enter: Enter, station: Station, given: tuple[str, str], tmp_path: Path
) -> None:
    position = station.position()
    run = detached(station, "leave it", given, "--dry-run")
    station.until("run.ended", after=position)
    visit = enter(LOOKING)
    visit.go(f"/runs/{run}")
    with visit.page.expect_download() as download:
        visit.page.locator("a[download][href$='/stdout']").first.click()
    assert download.value.suggested_filename == "stdout"
    download.value.save_as(tmp_path / "taken")
    assert (tmp_path / "taken").read_bytes() == b"[dry run] nothing was started\n"


def test_a_long_run_is_folded_has_contents_and_fits_on_paper(
    enter: Enter, station: Station, given: tuple[str, str], tmp_path: Path
) -> None:
    tasks = "".join(f"  - {{task_id: t{n}, intent: one of many, tools: [echo]}}\n" for n in range(40))
    (tmp_path / "plan.yaml").write_text(f"tasks:\n{tasks}")
    position = station.position()
    run = detached(station, "many", (str(tmp_path / "plan.yaml"), given[1]), "--dry-run")
    station.until("run.ended", after=position)
    visit = enter(LOOKING)
    page = visit.page
    visit.go(f"/runs/{run}")
    table = page.get_by_role("table", name=re.compile("^Tasks that are"))
    expect(table).to_have_count(0)
    parts = page.get_by_role("navigation", name="Parts of this run")
    parts.get_by_role("link", name="Time").click()
    expect(page.get_by_role("heading", name="Time")).to_be_in_viewport()
    parts.get_by_role("link", name="Tasks").click()
    expect(table).to_be_visible()
    expect(table.get_by_role("row")).to_have_count(11)
    page.get_by_text("30 more", exact=True).click()
    more = page.get_by_role("table", name=re.compile("^More tasks that are"))
    expect(more.get_by_role("row")).to_have_count(31)
    with page.expect_navigation():  # a sheet for paper is loaded last
        parts.get_by_role("link", name="All").click()
    expect(page.locator("#tasks summary").first).to_contain_text("40")
    page.emulate_media(media="print")
    drawn = page.locator("figure.drawing svg").first.bounding_box()
    assert drawn
    assert drawn["height"] <= 380, "what is drawn leaves no page half empty"
