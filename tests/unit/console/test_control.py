"""Settings from the console: the stop switch, modes, arming, the end of a session; and what is refused how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pmagent.contracts.orchestra_events import RunRequested
from pmagent.pla import reading
from tests.support.approving import APPROVING, ASKING, LOOKING, forms, page_of, proposed, stand_by, told, until
from tests.support.cases import each
from tests.support.consoles import Console, LiveHost
from tests.support.orchestra import RUN, config, plan

CONTROLS = ("pause", "resume", "mode", "arm", "disarm", "end")


@pytest.fixture(autouse=True)
def running(host: LiveHost) -> Iterator[None]:
    """Nothing is paused, and the mode is OBSERVE, before and after."""
    yield
    if host.perform("status").document["paused"]:
        host.perform("control.resume", operator=ASKING, channel="cli")
    host.perform("pla.mode", operator=ASKING, channel="cli", mode="OBSERVE")


def mode(host: LiveHost) -> str:
    """The PLA's mode."""
    return reading.warden(host.host.runtime.engine).mode


def last(host: LiveHost, type: str) -> Any:
    """The payload of the last event of this type."""
    found = [event for event in _events(host) if event.type == type]
    return found[-1].data


def _events(host: LiveHost) -> list[Any]:
    return [host.host.event(position) for position in range(1, host.position + 1)]


def test_the_stop_switch_pauses_and_says_who_and_why(host: LiveHost, bob: Console) -> None:
    answer = bob.post("/control/pause", reason="something smells of burning")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    paused = last(host, "control.paused")
    assert (paused.operator_id, paused.channel, paused.reason) == (APPROVING, "console", "something smells of burning")
    text = told(page_of(bob.get("/"), 200))
    assert "‖ paused since" in text
    assert "by bob: something smells of burning" in text
    assert "0 effects wait" in text


def test_stopping_twice_is_stopping_and_the_first_stands(host: LiveHost, bob: Console) -> None:
    for _ in range(2):
        assert bob.post("/control/pause").status_code == 303
    first, second = [event.data for event in _events(host) if event.type == "control.paused"][-2:]
    assert second.since == first.request


def test_stopping_withdraws_what_is_open_and_lowers_the_mode(host: LiveHost, bob: Console) -> None:
    made = proposed(host)
    bob.post("/control/pause")
    assert mode(host) == "OBSERVE"
    assert host.perform("pla.show", proposal_id=made["proposal_id"]).document["outcome"] == "withdrawn"


def test_what_waits_for_the_stop_switch_is_named_and_one_step_away(host: LiveHost, bob: Console) -> None:
    bob.post("/control/pause")
    given = plan({"one": [], "two": []})
    asked = RunRequested(run_id=RUN, intent="say it", config=config(), plan=given)
    host.run(host.host.tell_draft, host.host.drafted(asked, RUN))
    until(host, lambda: len(host.host.runtime.engine.effects.held) == 2)
    first, _ = host.host.runtime.engine.effects.held
    page = page_of(bob.get("/"), 200)
    assert "2 effects wait" in told(page)
    assert "task.attempt_requested , the oldest is event" in told(page)
    assert f"/log/{first}" in page.links()
    host.perform("orchestra.cancel", run_id=RUN)
    until(host, lambda: not host.host.runtime.engine.effects.held)
    assert "0 effects wait" in told(page_of(bob.get("/"), 200))


def test_resuming_lets_effects_go_on(host: LiveHost, bob: Console) -> None:
    bob.post("/control/pause")
    page = page_of(bob.get("/"), 200)
    assert forms(page.source, "/control/pause") == []
    (fields,) = forms(page.source, "/control/resume")
    assert bob.post("/control/resume", **fields).status_code == 303
    assert host.perform("status").document["paused"] is None
    assert last(host, "control.resumed").operator_id == APPROVING


def test_a_mode_is_set_by_who_is_signed_in(host: LiveHost, bob: Console) -> None:
    (fields,) = forms(bob.page("/"), "/control/mode")
    assert fields["mode"] == "SUGGEST"
    assert bob.post("/control/mode", **fields).status_code == 303
    changed = last(host, "pla.mode_changed")
    assert (changed.mode, changed.who, changed.channel) == ("SUGGEST", APPROVING, "console")


def test_a_mode_has_a_reason_and_a_class_where_they_are_said(host: LiveHost, bob: Console) -> None:
    (fields,) = forms(bob.page("/?change=mode"), "/control/mode")
    more = {"mode": "SUGGEST", "reason": "a look round", "action_class": "diagnostic"}
    assert bob.post("/control/mode", **{**fields, **more}).status_code == 303
    changed = last(host, "pla.mode_changed")
    assert (changed.why, changed.action_class) == ("a look round", "diagnostic")


def test_what_is_refused_is_told_with_reasons_and_what_mends_it(host: LiveHost, bob: Console) -> None:
    page = page_of(bob.post("/control/mode", mode="EXECUTE"), 409)
    text = told(page)
    assert "The mode is not EXECUTE" in text
    assert "from OBSERVE the next mode is SUGGEST" in text
    assert "pmagent pla mode SUGGEST" in text
    assert page.copied == ["pmagent pla mode EXECUTE"]
    assert mode(host) == "OBSERVE"


def test_arming_without_a_device_is_refused_in_words(host: LiveHost, bob: Console) -> None:
    text = told(page_of(bob.post("/control/arm"), 409))
    assert "The device is not armed" in text
    assert reading.warden(host.host.runtime.engine).armed is False


_DEVICE = {
    "device_id": "d-1", "port": "/dev/ttyACM0", "firmware_version": "1", "kill_switch_state": "ARMED",
    "compatible": True, "text": "", "caps_lock": False, "error": "",
}  # fmt: skip


def test_a_machine_that_stands_by_says_where_a_device_is_armed(bob: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stand_by(patch, mode="EXECUTE", device=_DEVICE)
        page = page_of(bob.get("/"), 200)
    assert "somebody who sees the device arms it" in told(page)
    assert not forms(page.source, "/control/arm")
    assert forms(page.source, "/control/disarm")


def test_a_session_is_ended_once(host: LiveHost, bob: Console) -> None:
    session = proposed(host)["session_id"]
    assert not forms(bob.page("/"), "/control/end"), "one press too many ends nothing"
    asked = bob.page("/?change=end")
    (fields,) = forms(asked, "/control/end")
    assert fields["session"] == session
    assert "The open proposal is withdrawn: Type ls -la" in told(page_of(bob.get("/?change=end"), 200))
    answers = [bob.post("/control/end", **fields) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert len([event for event in _events(host) if event.type == "pla.end_requested"]) == 1
    assert reading.warden(host.host.runtime.engine).session_id == ""
    assert not forms(bob.page("/?change=end"), "/control/end"), "there is none to end"


@each(
    "name, fields",
    [
        ("mode", {"mode": "TYPE"}),
        ("mode", {}),
        ("mode", {"mode": "SUGGEST", "action_class": "mischief"}),
        ("pause", {"reason": "x" * 501}),
        ("disarm", {"reason": "x" * 501}),
        ("end", {}),
        ("end", {"session": "pla-1"}),
        ("end", {"session": "pla-" + "0" * 32 + "\n"}),
    ],
)
def test_what_no_form_of_ours_sends_is_refused_and_nothing_is_recorded(
    host: LiveHost, bob: Console, name: str, fields: dict[str, str]
) -> None:
    token = bob.csrf()
    before = host.position
    page_of(bob.post(f"/control/{name}", csrf=token, **fields), 400)
    assert host.position == before


@each("name", [name for name in CONTROLS if name not in ("pause", "disarm")])
def test_who_may_only_look_sets_nothing(host: LiveHost, eve: Console, name: str) -> None:
    token = eve.csrf()
    before = host.position
    page_of(eve.post(f"/control/{name}", csrf=token, mode="SUGGEST", session="pla-" + "0" * 32), 403)
    assert host.position == before


def test_who_may_only_look_stops(host: LiveHost, eve: Console) -> None:
    page = eve.page("/")
    (fields, *_) = forms(page, "/control/pause")
    assert eve.post("/control/pause", reason="smoke", **fields).status_code == 303
    paused = last(host, "control.paused")
    assert (paused.operator_id, paused.channel, paused.reason) == (LOOKING, "console", "smoke")
    assert forms(eve.page("/"), "/control/resume") == []


def test_who_may_only_look_disarms(host: LiveHost, eve: Console) -> None:
    assert eve.post("/control/disarm").status_code == 303
    assert last(host, "pla.disarm_requested").operator_id == LOOKING


@each("name", CONTROLS)
def test_where_a_form_is_sent_the_first_page_is_found(bob: Console, name: str) -> None:
    assert "Stop switch" in told(page_of(bob.get(f"/control/{name}"), 200))


@each(
    "back, leads",
    [
        ("/approvals/prop-0123", "/approvals/prop-0123"),
        ("", "/"),
        ("//evil.example/approvals/a", "/"),
        ("https://evil.example", "/"),
        ("/approvals/../log", "/"),
        ("/approvals/a\n", "/"),
    ],
)
def test_one_comes_back_only_to_a_proposal_or_the_first_page(bob: Console, back: str, leads: str) -> None:
    assert bob.post("/control/disarm", back=back).headers["location"] == leads
