"""A run that is followed in a real browser: nothing is reloaded, and it is ended where it is looked at."""

from __future__ import annotations

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
        visit.page.locator("a[href$='/stdout']").first.click()
    assert download.value.suggested_filename == "stdout"
    download.value.save_as(tmp_path / "taken")
    assert (tmp_path / "taken").read_bytes() == b"[dry run] nothing was started\n"
