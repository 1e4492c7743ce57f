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
from tests.support.pla import ALICE, BOOT, PlaHarness


def reported(kill: Any = "ARMED", mode: Any = "OBSERVE", boot: str = BOOT) -> HidReported:
    """A status that changed."""
    return HidReported(boot_id=boot, mode=mode, led_state=mode == "EXECUTE", kill_switch_state=kill)


def test_it_starts_in_observe_and_rises_by_one_step_at_a_time() -> None:
    harness = PlaHarness().link()
    assert harness.warden.mode == "OBSERVE"
    harness.mode("EXECUTE")
    refused = harness.last(PlaModeAnswered)
    assert (refused.accepted, refused.mode) == (False, "OBSERVE")
    assert refused.reasons == ["from OBSERVE the next mode is SUGGEST"]
    harness.mode("SUGGEST", "EXECUTE")
    assert harness.last(PlaModeAnswered).accepted
    assert [event.data.mode for event in harness.of(PlaModeChanged)] == ["SUGGEST", "EXECUTE"]


@each("to", ["OBSERVE", "SUGGEST"])
def test_it_falls_to_any_lower_mode_and_the_device_is_disarmed(to: Any) -> None:
    harness = PlaHarness().ready().mode(to)
    assert harness.warden.mode == to
    assert harness.last(PlaModeChanged).who == ALICE
    assert not harness.armed
    assert not harness.engine.states["hid"].armed


def test_the_same_mode_is_granted_and_changes_nothing() -> None:
    harness = PlaHarness().mode("SUGGEST", "SUGGEST")
    assert harness.last(PlaModeAnswered).accepted
    assert len(harness.of(PlaModeChanged)) == 1


def test_a_session_begins_with_the_first_wish_and_there_is_one() -> None:
    harness = PlaHarness().mode("SUGGEST", "OBSERVE", "SUGGEST")
    (began,) = harness.of(PlaSessionBegan)
    assert {event.data.session_id for event in harness.of(PlaModeChanged)} == {began.data.session_id}


def test_what_the_device_reports_of_itself_is_known() -> None:
    harness = PlaHarness().link()
    message = "CAPS_LOCK: the machine's Caps Lock is on"
    report = replace(reported(), caps_lock=True, error_code="UNKNOWN_ERROR", error_message=message)
    harness.tell(report)
    assert harness.warden.device is not None
    assert (harness.warden.device.caps_lock, harness.warden.device.error) == (True, message)
    harness.tell(replace(report, caps_lock=False, error_code="NONE", error_message=""))
    assert (harness.warden.device.caps_lock, harness.warden.device.error) == (False, "")
    harness.tell(replace(report, error_message=""))
    assert harness.warden.device.error == "UNKNOWN_ERROR", "where the device says no more"
    harness.tell(replace(report, caps_lock=False, error_code="NONE", error_message=""))
    harness.tell(replace(report, boot_id="f" * 16))
    assert not harness.warden.device.caps_lock, "of another boot"


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
    harness = PlaHarness().ready()
    out = harness.fact(fact)
    (changed,) = [event.data for event in out.events if isinstance(event.data, PlaModeChanged)]
    assert (changed.mode, changed.code) == ("OBSERVE", code), "in the same reaction as the news"
    assert not harness.warden.armed
    assert not harness.engine.states["hid"].armed
    harness.go()
    assert harness.warden.mode == "OBSERVE"


def test_a_device_with_another_contract_is_a_violation_and_lowers_the_mode() -> None:
    harness = PlaHarness().ready().link(boot="f" * 16, compatible=False, text="hash differs")
    told = harness.last(PlaViolation)
    assert (told.kind, told.severity, told.text) == ("contract_mismatch", "warning", "hash differs")
    assert harness.warden.mode == "OBSERVE"
    assert harness.of(PlaModeChanged)[-1].data.code == "contract_mismatch"


@each("name", ["hid", "brain", "oa", "kernel"])
def test_nothing_is_typed_while_somebody_it_rests_on_is_halted(name: str) -> None:
    harness = PlaHarness().ready()
    halted = ActorHalted(name=name, input=1, error="ValueError", place="here")
    warden = next(actor for actor in harness.actors if actor.name == "warden")
    event = harness.history[0]
    at = replace(event, data=halted, kind="decision", actor="engine", type="actor.halted", position=999)
    state = warden.evolve(harness.warden, at)
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
    ],
)
def test_a_refused_request_to_arm_changes_nothing(modes: list[Any], linked: bool, mend: str) -> None:
    harness = PlaHarness()
    if linked:
        harness.link()
    harness.mode(*modes)
    if harness.warden.mode == "SUGGEST":
        harness.propose()
    before, known = harness.warden, len(harness.history)
    harness.arm()
    answer = harness.last(PlaArmAnswered)
    assert harness.warden == before
    assert [event.type for event in harness.history[known:]] == ["pla.arm_requested", "pla.arm_answered"]
    assert (answer.accepted, answer.armed) == (False, False)
    assert answer.mend[-1] == mend, "the mode rises only once there is a device that is ready"
    assert ("no device is linked" in answer.reasons) == (not linked)


def test_the_hint_of_a_refused_request_to_arm_leads_to_an_armed_device() -> None:
    harness = PlaHarness().link().mode("SUGGEST")
    harness.propose()
    harness.arm()
    for command in harness.last(PlaArmAnswered).mend[-1].split(", then "):
        words = command.removeprefix("pmagent pla ").split()
        harness.mode(words[1]) if words[0] == "mode" else harness.arm()
    assert harness.armed
    assert len(harness.warden.open_proposals) == 1


def test_arming_in_the_wrong_mode_was_a_violation_in_earlier_releases_and_replays_as_one() -> None:
    harness = PlaHarness().link().mode("SUGGEST")
    harness.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    told = harness.last(PlaViolation)
    assert (told.kind, told.severity, told.handling) == (
        "mode_mismatch",
        "warning",
        "HID is disabled; the mode has to be set again",
    )
    assert harness.warden.mode == "OBSERVE"
    assert not harness.last(PlaArmAnswered).accepted


def test_a_device_that_says_execute_unasked_is_a_violation_and_is_disarmed() -> None:
    harness = PlaHarness().link().mode("SUGGEST")
    harness.advance(5)
    harness.tell(reported(mode="EXECUTE"))
    assert harness.last(PlaViolation).kind == "mode_mismatch"
    assert harness.warden.mode == "OBSERVE"
    assert harness.last(HidDisarmRequested).why == "the device says EXECUTE, and nobody has armed it"


def test_ending_a_session_withdraws_what_is_open() -> None:
    harness = PlaHarness().mode("SUGGEST")
    harness.propose()
    harness.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
    assert harness.last(PlaProposalClosed).outcome == "withdrawn"
    assert (harness.last(PlaSessionEnded).state, harness.warden.session_id) == ("complete", "")
    harness.tell(PlaEndRequested(operator_id=ALICE, channel="cli"))
    assert harness.last(PlaModeAnswered).reasons == ["there is no session"]


def test_suggest_outlives_commands_that_end_in_order() -> None:
    harness = PlaHarness(surface="pla.mode").mode("SUGGEST")
    harness.fact(DaemonStopped(reason="done"))
    harness.fact(DaemonStarted(version="0", python="3", surface="pla.propose"))
    assert not [event for event in harness.of(PlaModeChanged) if event.data.mode == "OBSERVE"]
    harness.fact(DaemonStarted(version="0", python="3", surface="pla.propose"))
    assert harness.last(PlaModeChanged).mode == "OBSERVE", "the one before was cut off"


def test_a_second_device_takes_the_place_of_the_first_and_nothing_stays_armed() -> None:
    harness = PlaHarness().ready().link(boot="e" * 16)
    assert harness.last(HidTripped).code in ("lease_lost", "device_reset")
    assert harness.warden.mode == "OBSERVE"
    assert harness.last(HidLinked).boot_id == "e" * 16
