"""The ladder of modes, and what lowers it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.hid import HidDisarmRequested, HidLinked, HidLost, HidReported, HidTripped
from pmagent.contracts.payload import Correlated
from pmagent.contracts.pla_events import (
    PlaArmAnswered,
    PlaArmRequested,
    PlaEndRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaProposalClosed,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from tests.support.cases import each
from tests.support.orchestra import kernel
from tests.support.pla import ALICE, BOOT, Desk


def reported(kill: Any = "ARMED", mode: Any = "OBSERVE", boot: str = BOOT) -> HidReported:
    """A status that changed."""
    return HidReported(boot_id=boot, mode=mode, led_state=mode == "EXECUTE", kill_switch_state=kill)


def test_it_starts_in_observe_and_rises_by_one_step_at_a_time() -> None:
    desk = Desk().link()
    assert desk.warden.mode == "OBSERVE"
    desk.mode("EXECUTE")
    refused = desk.last(PlaModeAnswered)
    assert (refused.accepted, refused.mode) == (False, "OBSERVE")
    assert refused.reasons == ["from OBSERVE the next mode is SUGGEST"]
    desk.mode("SUGGEST", "EXECUTE")
    assert desk.last(PlaModeAnswered).accepted
    assert [event.data.mode for event in desk.of(PlaModeChanged)] == ["SUGGEST", "EXECUTE"]


@each("to", ["OBSERVE", "SUGGEST"])
def test_it_falls_to_any_lower_mode_and_the_device_is_disarmed(to: Any) -> None:
    desk = Desk().ready().mode(to)
    assert desk.warden.mode == to
    assert desk.last(PlaModeChanged).who == ALICE
    assert not desk.armed
    assert not desk.engine.states["hid"].armed


def test_the_same_mode_is_granted_and_changes_nothing() -> None:
    desk = Desk().mode("SUGGEST", "SUGGEST")
    assert desk.last(PlaModeAnswered).accepted
    assert len(desk.of(PlaModeChanged)) == 1


def test_a_session_begins_with_the_first_wish_and_there_is_one() -> None:
    desk = Desk().mode("SUGGEST", "OBSERVE", "SUGGEST")
    (began,) = desk.of(PlaSessionBegan)
    assert {event.data.session_id for event in desk.of(PlaModeChanged)} == {began.data.session_id}


def test_what_the_device_reports_of_itself_is_known() -> None:
    desk = Desk().link()
    message = "CAPS_LOCK: the machine's Caps Lock is on"
    report = replace(reported(), caps_lock=True, error_code="UNKNOWN_ERROR", error_message=message)
    desk.tell(report)
    assert desk.warden.device is not None
    assert (desk.warden.device.caps_lock, desk.warden.device.error) == (True, message)
    desk.tell(replace(report, caps_lock=False, error_code="NONE", error_message=""))
    assert (desk.warden.device.caps_lock, desk.warden.device.error) == (False, "")
    desk.tell(replace(report, error_message=""))
    assert desk.warden.device.error == "UNKNOWN_ERROR", "where the device says no more"
    desk.tell(replace(report, caps_lock=False, error_code="NONE", error_message=""))
    desk.tell(replace(report, boot_id="f" * 16))
    assert not desk.warden.device.caps_lock, "of another boot"


FALLS: dict[str, tuple[Any, str]] = {
    "the kill switch": (reported("DISABLED"), "killed"),
    "a switch that nobody knows of": (reported("UNKNOWN"), "killed"),
    "an unplugged device": (HidLost(boot_id=BOOT, code="unplugged", text="gone"), "link_lost"),
    "a silent device": (HidLost(boot_id=BOOT, code="stale", text="3 s"), "heartbeat_stale"),
    "a device that was reset": (HidLost(boot_id=BOOT, code="reset", text="new boot"), "device_reset"),
    "a blocked kernel": (kernel("BLOCKED"), "kernel_blocked"),
    "an end": (DaemonStopped(reason="SIGTERM"), "restarted"),
    "a start after a crash": (DaemonStarted(version="0", python="3", surface="daemon"), "restarted"),
}


@each("name", FALLS)
def test_what_is_not_in_order_lowers_the_mode_at_once(name: str) -> None:
    fact, code = FALLS[name]
    desk = Desk().ready()
    out = desk.fact(fact)
    (changed,) = [event.data for event in out.events if isinstance(event.data, PlaModeChanged)]
    assert (changed.mode, changed.code) == ("OBSERVE", code), "in the same reaction as the news"
    assert not desk.warden.armed
    assert not desk.engine.states["hid"].armed
    desk.go()
    assert desk.warden.mode == "OBSERVE"


def test_a_device_with_another_contract_is_a_violation_and_lowers_the_mode() -> None:
    desk = Desk().ready().link(boot="f" * 16, compatible=False, text="hash differs")
    told = desk.last(PlaViolation)
    assert (told.kind, told.severity, told.text) == ("contract_mismatch", "warning", "hash differs")
    assert desk.warden.mode == "OBSERVE"
    assert desk.of(PlaModeChanged)[-1].data.code == "contract_mismatch"


@each("name", ["hid", "brain", "oa", "kernel"])
def test_nothing_is_typed_while_somebody_it_rests_on_is_halted(name: str) -> None:
    desk = Desk().ready()
    halted = ActorHalted(name=name, input=1, error="ValueError", place="here")
    warden = next(actor for actor in desk.actors if actor.name == "warden")
    event = desk.history[0]
    at = replace(event, data=halted, kind="decision", actor="engine", type="actor.halted", position=999)
    state = warden.evolve(desk.warden, at)
    (changed, *_) = [one.payload for one in warden.decide(state, at) if isinstance(one, Correlated)]
    assert isinstance(changed, PlaModeChanged)
    assert (changed.code, changed.mode) == ("halted", "OBSERVE")


@each(
    "modes, linked, mend",
    [
        ([], True, "pmagent pla mode SUGGEST, then pmagent pla mode EXECUTE, then pmagent pla arm"),
        (["SUGGEST", "OBSERVE"], True, "pmagent pla mode SUGGEST, then pmagent pla mode EXECUTE, then pmagent pla arm"),
        (["SUGGEST"], True, "pmagent pla mode EXECUTE, then pmagent pla arm"),
        (["SUGGEST"], False, "pmagent pla mode EXECUTE, then pmagent pla arm"),
    ]
,
)
def test_a_refused_request_to_arm_changes_nothing(modes: list[Any], linked: bool, mend: str) -> None:
    desk = Desk()
    if linked:
        desk.link()
    desk.mode(*modes)
    if desk.warden.mode == "SUGGEST":
        desk.propose()
    before, known = desk.warden, len(desk.history)
    desk.arm()
    answer = desk.last(PlaArmAnswered)
    assert desk.warden == before
    assert [event.type for event in desk.history[known:]] == ["pla.arm_requested", "pla.arm_answered"]
    assert (answer.accepted, answer.armed) == (False, False)
    assert answer.mend[-1] == mend, "the mode rises only once there is a device that is ready"
    assert ("no device is linked" in answer.reasons) == (not linked)


def test_the_hint_of_a_refused_request_to_arm_leads_to_an_armed_device() -> None:
    desk = Desk().link().mode("SUGGEST")
    desk.propose()
    desk.arm()
    for command in desk.last(PlaArmAnswered).mend[-1].split(", then "):
        words = command.removeprefix("pmagent pla ").split()
        desk.mode(words[1]) if words[0] == "mode" else desk.arm()
    assert desk.armed
    assert len(desk.warden.open_proposals) == 1


def test_arming_in_the_wrong_mode_was_a_violation_in_earlier_releases_and_replays_as_one() -> None:
    desk = Desk().link().mode("SUGGEST")
    desk.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    told = desk.last(PlaViolation)
    assert (told.kind, told.severity, told.handling) == (
        "mode_mismatch",
        "warning",
        "HID is disabled; the mode has to be set again",
    )
    assert desk.warden.mode == "OBSERVE"
    assert not desk.last(PlaArmAnswered).accepted


def test_a_device_that_says_execute_unasked_is_a_violation_and_is_disarmed() -> None:
    desk = Desk().link().mode("SUGGEST")
    desk.advance(5)
    desk.tell(reported(mode="EXECUTE"))
    assert desk.last(PlaViolation).kind == "mode_mismatch"
    assert desk.warden.mode == "OBSERVE"
    assert desk.last(HidDisarmRequested).why == "the device says EXECUTE, and nobody has armed it"


def test_ending_a_session_withdraws_what_is_open() -> None:
    desk = Desk().mode("SUGGEST")
    desk.propose()
    desk.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
    assert desk.last(PlaProposalClosed).outcome == "withdrawn"
    assert (desk.last(PlaSessionEnded).state, desk.warden.session_id) == ("complete", "")
    desk.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
    assert desk.last(PlaModeAnswered).reasons == ["there is no session"]


def test_suggest_outlives_commands_that_end_in_order() -> None:
    desk = Desk(surface="pla.mode").mode("SUGGEST")
    desk.fact(DaemonStopped(reason="done"))
    desk.fact(DaemonStarted(version="0", python="3", surface="pla.propose"))
    assert not [event for event in desk.of(PlaModeChanged) if event.data.mode == "OBSERVE"]
    desk.fact(DaemonStarted(version="0", python="3", surface="pla.propose"))
    assert desk.last(PlaModeChanged).mode == "OBSERVE", "the one before was cut off"


def test_a_second_device_takes_the_place_of_the_first_and_nothing_stays_armed() -> None:
    desk = Desk().ready().link(boot="e" * 16)
    assert desk.last(HidTripped).code in ("lease_lost", "device_reset")
    assert desk.warden.mode == "OBSERVE"
    assert desk.last(HidLinked).boot_id == "e" * 16
