"""The page of a machine that stands by for a log in PostgreSQL, in a browser: live, and beyond a take-over."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pmagent.events.postgres.schema import prepare
from tests.support.machines import Machine, says
from tests.support.postgres import WRITER, Server, one_server
from tests.support.screens import Screens, Visit, require_chromium

pytestmark = pytest.mark.slow

LIVE = re.compile(r"live · \d+")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, whose writing role is ada's."""
    require_chromium()
    with one_server() as made:
        assert not prepare(made.address(role="postgres"), [], [], {WRITER: "ada"})
        yield made


def test_a_page_of_a_standby_is_live_stops_effects_and_goes_on_when_it_takes_over(
    screens: Screens, server: Server, workspace: Path, tmp_path: Path
) -> None:
    address = str(server.new_log())
    first, second = Machine(tmp_path / "a", workspace, address), Machine(tmp_path / "b", workspace, address)
    second.environ["PMAGENT_CONSOLE_ENABLED"] = "true"
    with first.up() as holder:
        says(holder, "ready;")
        with second.up("--standby") as standby:
            says(standby, "console is served")
            entrance = second.run("console", "--operator", "ada", "--format", "json").document["url"]
            visit = Visit(screens.browser, entrance.partition("/enter")[0])
            page = visit.page
            page.goto(entrance)
            expect(page.get_by_text("This machine stands by")).to_be_visible()
            expect(page.locator("#connection")).to_have_text(LIVE)
            page.get_by_role("button", name="Stop", exact=True).first.click()
            expect(page.locator("#standing")).to_contain_text("paused")
            assert first.run("resume", "--operator", "ada").code == 0
            expect(page.locator("#standing")).to_contain_text("running")
            holder.send_signal(signal.SIGTERM)
            says(standby, "ready;")
            expect(page.get_by_text("This machine stands by")).to_have_count(0)
            expect(page.locator("#lost")).to_be_hidden()
            expect(page.locator("#connection")).to_have_text(LIVE)
            visit.close()
