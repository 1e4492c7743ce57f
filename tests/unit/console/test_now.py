"""The first page: how things stand, what runs, what somebody should know of, and the forms that set something."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pmagent.console.pages.views.now import grouped, reachable
from pmagent.contracts.control import SignInRefused
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.errors import PmagentError
from pmagent.events.segment_log import SegmentLog
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, configure, forms, page_of, proposed, told, until
from tests.support.cases import each
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.orchestra import RUN, config, plan


def now(browser: Console, query: str = "") -> str:
    """The text of the page."""
    return told(page_of(browser.get(f"/{query}"), 200))


def test_it_says_how_kernel_log_and_lab_assistant_stand(host: LiveHost, bob: Console) -> None:
    status = host.perform("status").document
    text = now(bob)
    for fact in ("✓ NORMAL", f"Branch {status['branch']}", f"Phase {status['phase']}", status["log"]["log_id"]):
        assert fact in text, fact
    assert "No device is linked" in text
    assert "Nothing runs." in text
    assert "✓ running" in text


def test_a_session_of_the_oa_is_listed_with_the_mode_it_knows_of(host: LiveHost, bob: Console) -> None:
    booted = host.perform("boot.oa").document
    assert booted["oa_boot_envelope"]["session_metadata"]["session_id"] in now(bob)


def test_the_open_proposal_is_one_step_away(host: LiveHost, bob: Console) -> None:
    made = proposed(host)
    assert f"/approvals/{made['proposal_id']}" in page_of(bob.get("/"), 200).links()
    assert made["session_id"] in now(bob)


def test_a_kernel_that_is_not_in_order_says_why_and_what_mends_it(host: LiveHost, bob: Console) -> None:
    surface = host.workspace / "share" / "REALITY_GREEN_SUMMARY.json"
    before = surface.read_bytes()
    surface.write_bytes(b"{")
    try:
        until(host, lambda: host.host.runtime.engine.states["kernel"].mode == "BLOCKED")
        text = now(bob)
        reason = host.perform("status").document["reasons"][0]
        assert "✗ BLOCKED" in text
        assert "Allows diagnostic" in text
        assert "Forbids feature work, ops blocks, migrations, phase transitions, remediation" in text
        assert reason["text"] in text
        assert f"Mend: {reason['mend']}" in text
        assert "The kernel is BLOCKED" in text, "it is an alert as well"
    finally:
        surface.write_bytes(before)
    until(host, lambda: host.host.runtime.engine.states["kernel"].mode == "NORMAL")


def test_what_is_open_is_told_by_the_status_and_shown(host: LiveHost, bob: Console) -> None:
    host.perform("control.pause", operator=APPROVING, channel="cli")  # so that it stays open
    asked = RunRequested(run_id=RUN, intent="build <b>it</b>", config=config(), plan=plan({"one": []}))
    host.run(host.host.tell_draft, host.host.drafted(asked, RUN))
    until(host, lambda: host.host.runtime.engine.effects.held)
    (job,) = host.perform("status").document["jobs"]
    assert (job["kind"], job["id"], job["doing"], job["what"]) == ("run", RUN, "running", asked.intent)
    page = page_of(bob.get("/"), 200)
    assert f"/runs/{RUN}" in page.links()
    assert "build <b>it</b>" in told(page)
    host.perform("orchestra.cancel", run_id=RUN)
    until(host, lambda: not host.host.runtime.engine.states["orchestrator"].runs)
    work = bob.page("/").partition('id="work"')[2].partition("</section>")[0]
    assert work, "the region stays"
    assert f"/runs/{RUN}" not in work, "it is one of the newest runs, and runs no more"
    host.perform("control.resume", operator=APPROVING, channel="cli")


@each("query", ["?change=everything", "?change=Stop"])
def test_there_is_nothing_else_to_change(bob: Console, query: str) -> None:
    page_of(bob.get(f"/{query}"), 400)


def test_who_may_only_look_finds_the_stop_switch_and_nothing_else_to_press(eve: Console) -> None:
    for query in ("", "?change=stop", "?change=mode"):
        page = page_of(eve.get(f"/{query}"), 200)
        found = {one["action"] for one in page.all("form") if one.get("action", "").startswith("/control/")}
        assert found == {"/control/pause"}


def test_a_region_with_forms_is_the_same_while_nothing_changes(host: LiveHost, bob: Console) -> None:
    proposed(host)

    def regions() -> list[str]:
        source = bob.page("/")
        found = []
        for name in ("stop", "pla-mode", "pla-device"):
            start = source.index(f'id="{name}"')
            found.append(
                source[start : source.index("</form>", start)] if name != "pla-device" else source[start : start + 400]
            )
        return found

    before = regions()
    host.perform("rebuild")
    host.perform("boot.oa")
    assert regions() == before


def test_text_is_typed_only_where_the_page_is_not_made_anew_without_scripts(bob: Console) -> None:
    plain, stop = bob.page("/"), bob.page("/?change=stop")
    assert 'http-equiv="refresh"' in plain
    assert 'http-equiv="refresh"' not in stop
    assert "reason" not in forms(plain, "/control/pause")[-1]
    assert "reason" in forms(stop, "/control/pause")[-1]


def test_an_unknown_outcome_heads_the_page_and_the_inbox_until_it_is_acknowledged(
    host: LiveHost, bob: Console, eve: Console
) -> None:
    unknown = HidOutcomeUnknown(
        session_id="pla-1", proposal_id="prop-1", execution_id="exec-1", action_type="TYPE_TEXT", of=4, why="lost <i>",
    )  # fmt: skip
    at = host.run(host.host.tell_draft, host.host.drafted(unknown, "pla.test-unknown"))
    host.run(host.host.tell_draft, host.host.drafted(SignInRefused(operator_id="eve"), "console.test-refused"))
    page = page_of(bob.get("/"), 200)
    assert {"/approvals/prop-1", "/alerts", f"/log/{at}"} <= set(page.links())
    text = told(page)
    assert text.index("lost <i>") < text.index("Stop switch")
    inbox = told(page_of(bob.get("/alerts"), 200))
    assert inbox.index("lost <i>") < inbox.index("A sign-in to the console was refused")
    assert not forms(page_of(eve.get("/alerts"), 200).source, "/alerts/acknowledge")[0].get("note")
    page_of(eve.post("/alerts/acknowledge", **{f"alert-{at}": "on", "note": "seen"}), 403)
    unmarked = page_of(bob.post("/alerts/acknowledge", note='a "long" story'), 400)
    assert "mark 1 to 50 alerts" in told(unmarked)
    assert forms(unmarked.source, "/alerts/acknowledge")[0]["note"] == 'a "long" story', "it is kept"
    assert 'id="open" data-region' not in unmarked.source, "and nothing takes it away"
    unnoted = page_of(bob.post("/alerts/acknowledge", **{f"alert-{at}": "on", "note": " "}), 400)
    assert f'id="alert-{at}" checked' in unnoted.source
    assert bob.post("/alerts/acknowledge", **{f"alert-{at}": "on", "note": "nothing <b>"}).status_code == 303
    assert "lost <i>" not in now(bob)
    done = told(page_of(bob.get("/alerts"), 200))
    assert "nothing <b>" in done
    assert APPROVING in done
    refused = page_of(bob.post("/alerts/acknowledge", **{f"alert-{at}": "on", "note": "again"}), 409)
    assert "no open alert" in told(refused)


def test_effects_are_told_by_type_with_the_oldest_and_what_is_held() -> None:
    effects: list[dict[str, Any]] = [
        {"position": 1, "type": "timer.requested", "since": "2026-11-22T12:00:00.000000Z", "held": False},
        {"position": 3, "type": "task.attempt_requested", "since": "2026-11-22T12:00:03.000000Z", "held": True},
        {"position": 2, "type": "model.call_requested", "since": "2026-11-22T12:00:02.000000Z", "held": False},
        {"position": 4, "type": "task.attempt_requested", "since": "2026-11-22T12:00:01.000000Z", "held": False},
    ]
    found = [(one.type, one.count, one.held, one.first_held, one.since[17:19]) for one in grouped(effects)]
    assert found == [("task.attempt_requested", 2, 1, 3, "01"), ("model.call_requested", 1, 0, 0, "02")]


@each(
    "mode, names",
    [
        ("OBSERVE", ["SUGGEST"]),
        ("SUGGEST", ["OBSERVE", "EXECUTE"]),
        ("EXECUTE", ["OBSERVE", "SUGGEST"]),
    ],
)
def test_a_mode_is_left_one_step_up_or_any_down(mode: str, names: list[str]) -> None:
    assert [name for name, _ in reachable(mode)] == names


def test_without_a_daemon_the_page_still_tells_where_the_log_ends(tmp_path: Path) -> None:
    workspace = configure(fresh_example(tmp_path / "workspace"))
    with ExitStack() as daemon:
        daemon.enter_context(live_host(workspace))
        with console(workspace, APPROVING) as browser:
            daemon.close()
            text = now(browser)
    assert "The current state is not known" in text
    assert "Stop switch ✗ not known" in text


def test_halted_actors_are_named(host: LiveHost, bob: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(host.host.runtime.engine.halted, "brain", 1)
    monkeypatch.setattr(bob.context, "_standing", {})
    text = now(bob)
    assert "halted brain" in text


def test_a_log_whose_database_is_away_is_said_on_each_page(host: LiveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(PmagentError, exit_code=5):
        """The error of a database that is not reached."""

    def away(_store: SegmentLog) -> Any:
        raise Away("the database cannot be reached", "look at the server")

    with console(host.workspace, APPROVING) as browser:
        monkeypatch.setattr(SegmentLog, "reader", away)
        for place in ("/", "/log", "/runs", "/settings"):
            answer = browser.get(place)
            assert answer.status_code in (200, 503), place
            assert "the database cannot be reached" in answer.text, place
