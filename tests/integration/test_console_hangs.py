"""The console beside a daemon that hangs: stopping is answered soon, with what is known, and happens later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import pmagent
from tests.support.consoles import Console, console
from tests.support.daemons import running, stopped
from tests.support.pla_live import await_event, events

STOPS = ("pause", "disarm")


def _stop(browser: Console, csrf: str, what: str) -> str:
    answer = browser.post(f"/control/{what}", csrf=csrf)
    assert answer.status_code == 503
    return str(answer.text)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["approve", "view"])
def test_stopping_a_daemon_that_hangs_says_that_it_may_still_happen_and_it_does(workspace: Path, role: str) -> None:
    with running(workspace) as daemon, console(workspace, "ada", role) as browser:  # type: ignore[arg-type]
        csrf = browser.csrf()
        with stopped(daemon):
            for what in STOPS:
                text = _stop(browser, csrf, what)
                assert "could not be delivered yet" in text
                assert "may still happen" in text
                assert "hit the switch on the device" in text
            assert "does not answer" in browser.get("/").text
        await_event(workspace, "control.paused")
        await_event(workspace, "pla.arm_answered")
        assert [one["channel"] for one in events(workspace, "control.paused")] == ["console"]
        assert daemon.end()[0] == 0


@pytest.mark.slow
def test_signing_out_beside_a_daemon_that_hangs_ends_the_session_and_is_recorded_later(workspace: Path) -> None:
    with running(workspace) as daemon, console(workspace) as browser:
        csrf = browser.csrf()
        with stopped(daemon):
            browser.post("/sign-out", csrf=csrf)
        await_event(workspace, "console.signed_out")
        assert browser.get("/").status_code == 303
        assert pmagent(workspace, "status").code == 0
        assert daemon.end()[0] == 0
