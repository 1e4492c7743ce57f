"""The console's pages of agents: sessions, a call that waits, its approval, and the policy; in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import expect

from pmagent.guests import hook as hook_file
from pmagent.guests.harnesses import Hook
from pmagent.workspace.layout import Layout
from tests.browser.conftest import Enter
from tests.support.commands import SECONDS
from tests.support.policies import write_policy
from tests.support.stations import APPROVING, LOOKING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]


AGENT = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
"""Starts the hook, as a harness does: an answer that came from this process's children would not count."""


def told(station: Station, event: str, wait: int = 0, **payload: Any) -> tuple[int, str]:
    """The exit code and stdout of the hook of a session of Claude Code."""
    layout = Layout(station.workspace)
    hook = Hook(sys.executable, hook_file.__file__, str(layout.home))
    given = {"session_id": "session-of-the-test", "hook_event_name": event, "cwd": "/", **payload}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", AGENT, *hook.words("claude", event, "enforce", wait)],
        input=json.dumps(given), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def asked(station: Station, thread: ThreadPoolExecutor, line: str) -> Future[tuple[int, str]]:
    """A call that waits for operators."""
    call = {"tool_name": "Bash", "tool_use_id": line, "tool_input": {"command": line}}
    return thread.submit(told, station, "PreToolUse", 300, **call)


def test_a_waiting_call_is_shown_and_approved_and_stands_in_the_sessions_timeline(
    station: Station, enter: Enter
) -> None:
    write_policy(station.workspace, "version: 1\ndeny: [Bash(rm *)]\nallow: [Bash(echo *)]\n")
    told(station, "SessionStart", source="startup")
    for line in ("echo hello", "rm -r x"):
        told(station, "PreToolUse", tool_name="Bash", tool_use_id=line, tool_input={"command": line})
    page = enter(APPROVING).page
    page.get_by_role("navigation").get_by_role("link", name="Agents").click()
    with ThreadPoolExecutor(2) as thread:
        waits, unwanted = asked(station, thread, "make release"), asked(station, thread, "make a-mess")
        waiting = page.get_by_role("region", name="Calls that wait")
        expect(waiting.get_by_role("row")).to_have_count(3)
        waiting.get_by_role("link", name="make release").click()
        expect(page.get_by_role("main")).to_contain_text(re.compile("make.release"))
        page.get_by_role("button", name="Approve it once").click()
        assert '"allow"' in waits.result(SECONDS)[1]
        expect(waiting.get_by_role("row")).to_have_count(2)
        waiting.get_by_role("link", name="make a-mess").click()
        page.get_by_label("Reason").fill("no")
        page.get_by_role("button", name="Reject it").click()
        assert '"allow"' not in unwanted.result(SECONDS)[1]
    # The page is made from the log, whatever lies in the workspace.
    document = next((station.workspace / "guests").glob("*.json"))
    document.write_text(document.read_text().replace("make release", "make nothing"))
    page.get_by_role("region", name="Sessions").get_by_role("link").first.click()
    calls = page.get_by_role("table", name="Calls")
    release = calls.get_by_role("row").filter(has_text="make release")
    expect(release).to_contain_text(f"approved by {APPROVING}")
    expect(calls.get_by_role("row").filter(has_text="make a-mess")).to_contain_text("rejected by")
    expect(calls.get_by_role("row").filter(has_text="rm -r x")).to_contain_text("deny")
    page.get_by_role("navigation").get_by_role("link", name="Policy").click()
    rule = page.get_by_role("row").filter(has_text="Bash(echo *)")
    expect(rule.get_by_role("cell").last).to_have_text("1")
    told(station, "SessionEnd", reason="other")


def test_who_may_only_look_decides_nothing_and_a_call_that_is_over_is_none(station: Station, enter: Enter) -> None:
    told(station, "SessionStart", source="resume")
    with ThreadPoolExecutor(1) as thread:
        waits = asked(station, thread, "make haste")
        visit = enter(LOOKING)
        visit.go("/agents")
        expect(visit.page.get_by_role("region", name="Calls that wait").get_by_role("row")).to_have_count(2)
        visit.go("/approvals")
        approvals = visit.page.get_by_role("region", name="Calls of agents that wait")
        approvals.get_by_role("link", name="make haste").click()
        expect(visit.page.get_by_role("main")).to_contain_text(re.compile("make.haste"))
        expect(visit.page.get_by_role("button", name="Approve it once")).to_have_count(0)
        number = visit.page.url.rpartition("/")[2]
        station.pmagent("approvals", "reject", number, "--reason", "enough")
        assert '"allow"' not in waits.result(SECONDS)[1]
    visit.go(f"/agents/calls/{number}")
    expect(visit.page.get_by_role("main")).to_contain_text("nothing waits under the number")
