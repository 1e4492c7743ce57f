"""Arming, the lease, pings and disarming."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectCancelRequested, EffectFailed
from pmagent.contracts.hid import (
    HidArmed,
    HidArmRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidPinged,
    HidPingRequested,
    HidRefused,
    HidSilent,
    HidTripped,
)
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.pla_events import (
    PlaArmAnswered,
    PlaArmRequested,
    PlaDisarmRequested,
    PlaModeChanged,
    PlaModeRequested,
)
from pmagent.events.event import Event, parse_time
from tests.support.cases import each
from tests.support.orchestra import kernel
from tests.support.pla import ALICE, BOOT, DEVICE, PlaHarness, answering, silent


def test_arming_needs_execute_a_permit_and_a_device() -> None:
    harness = PlaHarness().ready()
    (armed,) = harness.of(HidArmRequested)
    grant = harness.history[armed.data.permit - 1].data
    assert isinstance(grant, OaPermitGranted)
    assert (grant.action, grant.subject) == ("feature_work", f"hid:arm:{DEVICE}")
    answer = harness.last(PlaArmAnswered)
    assert (answer.accepted, answer.armed) == (True, True)


def test_a_kernel_that_forbids_the_work_forbids_arming() -> None:
    harness = PlaHarness(mode="DEGRADED").link().mode("SUGGEST", "EXECUTE").arm()
    answer = harness.last(PlaArmAnswered)
    assert not answer.accepted
    assert answer.reasons[0] == "it is not permitted: feature_work is forbidden in DEGRADED"
    assert harness.of(HidArmRequested) == []


def test_a_session_for_remediation_may_arm_where_the_kernel_is_degraded() -> None:
    harness = PlaHarness(mode="DEGRADED").link().mode("SUGGEST")
    harness.tell(PlaModeRequested(mode="EXECUTE", operator_id=ALICE, channel="cli", action_class="remediation"))
    harness.arm()
    assert harness.last(PlaArmAnswered).armed


def test_arming_what_is_armed_changes_nothing() -> None:
    harness = PlaHarness().ready().arm()
    assert harness.last(PlaArmAnswered).accepted
    assert len(harness.of(HidArmRequested)) == 1


def _killed(event: Event) -> HidRefused:
    return HidRefused(request=event.position, boot_id=BOOT, code="KILLED", text="no")


def _another(event: Event) -> HidArmed:
    return HidArmed(request=event.position, boot_id="f" * 16, lease_ms=5000)


def _failed(event: Event) -> EffectFailed:
    return EffectFailed(request=event.position, error="OSError", place="here")


@each("outcome", [silent, _killed, _another, _failed])
def test_a_device_that_does_not_arm_is_not_armed(outcome: Any) -> None:
    harness = PlaHarness().link().mode("SUGGEST", "EXECUTE")
    answering(harness, "hid.arm_requested", outcome)
    harness.arm()
    answer = harness.last(PlaArmAnswered)
    assert (answer.accepted, answer.armed) == (False, False)
    assert answer.reasons
    assert answer.mend
    assert not harness.engine.states["hid"].armed
    if not isinstance(outcome(harness.of(HidArmRequested)[-1]), HidRefused):
        assert harness.of(HidDisarmRequested), "it may have heard it"


def test_pings_keep_the_lease_while_the_device_is_heard() -> None:
    harness = PlaHarness().ready()
    harness.advance(20)
    assert harness.warden.armed
    assert 15 <= len(harness.of(HidPinged)) <= 21
    times = [event.time for event in harness.of(HidPinged)]
    assert times == sorted(times)


def test_a_device_that_is_not_heard_for_three_seconds_is_not_trusted_any_more() -> None:
    harness = PlaHarness().ready()
    harness.advance(2)
    answering(harness, "hid.ping_requested", silent)
    harness.advance(10)
    assert harness.last(HidTripped).code == "heartbeat_stale"
    assert harness.warden.mode == "OBSERVE"
    heard, changed = harness.of(HidPinged)[-1], harness.of(PlaModeChanged)[-1]
    assert 3.0 <= (parse_time(changed.time) - parse_time(heard.time)).total_seconds() < 4.0


@each(
    "ping, code",
    [
        ({"armed": False}, "lease_lost"),
        ({"kill_switch_state": "DISABLED"}, "killed"),
        ({"boot_id": "f" * 16}, "device_reset"),
    ],
)
def test_what_a_ping_brings_is_heeded(ping: dict[str, Any], code: str) -> None:
    def pinged(event: Event) -> HidPinged:
        given: dict[str, Any] = {"boot_id": BOOT, "armed": True, "kill_switch_state": "ARMED"}
        return HidPinged(request=event.position, **(given | ping))

    harness = PlaHarness().ready()
    answering(harness, "hid.ping_requested", pinged)
    harness.advance(2)
    assert harness.last(HidTripped).code == code
    assert harness.warden.mode == "OBSERVE"


def test_pings_end_with_the_arming() -> None:
    harness = PlaHarness().ready()
    harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    pings = len(harness.of(HidPingRequested))
    harness.advance(10)
    assert len(harness.of(HidPingRequested)) == pings
    assert not [event for event in harness.engine.effects.open.values() if event.actor == "hid"]


def test_disarming_is_answered_when_the_device_answers_or_does_not() -> None:
    harness = PlaHarness().ready()
    asked = harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    answer = harness.of(PlaArmAnswered)[-1]
    assert (answer.correlation, answer.data.accepted, answer.data.armed) == (asked.correlation, True, False)
    assert answer.data.reasons == []
    harness.arm()
    answering(harness, "hid.disarm_requested", silent)
    harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    assert harness.last(PlaArmAnswered).reasons == ["the device did not answer; its lease ends by itself within 5 s"]
    assert not harness.warden.armed


def test_nothing_is_armed_while_it_is_being_disarmed() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidDisarmRequested}
    harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    harness.arm()
    assert harness.last(PlaArmAnswered).reasons == ["the device is being disarmed"]
    harness.mute = set()
    harness.go()
    harness.arm()
    assert harness.warden.armed


def test_a_device_that_says_it_is_disarmed_is_believed_whoever_asked_for_it() -> None:
    harness = PlaHarness().ready()
    harness.mute = {HidDisarmRequested}
    harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    (late,) = harness.of(HidDisarmRequested)
    harness.fact(DaemonStarted(version="0", python="3", surface="daemon"))  # it is performed again, and answers late
    harness.finish(harness.of(KernelReadRequested)[-1].position, kernel())
    harness.ready()
    assert harness.warden.armed
    harness.finish(late.position, HidDisarmed(request=late.position, boot_id=BOOT))
    assert harness.last(HidTripped).code == "lease_lost"
    assert not harness.engine.states["warden"].armed
    assert harness.last(PlaModeChanged).mode == "OBSERVE"


def test_disarming_without_a_device_is_answered_at_once() -> None:
    harness = PlaHarness()
    harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    assert harness.last(PlaArmAnswered).accepted
    assert harness.last(PlaArmAnswered).reasons == ["no device is linked; one that was armed disarms itself within 5 s"]


def test_disarming_while_it_is_armed_ends_the_arming_first() -> None:
    harness = PlaHarness().link().mode("SUGGEST", "EXECUTE")
    harness.mute = {HidArmRequested}
    first = harness.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    second = harness.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    answers = {event.correlation: event.data for event in harness.of(PlaArmAnswered)}
    assert not answers[first.correlation].accepted
    assert answers[second.correlation].accepted
    (order,) = harness.of(HidArmRequested)
    assert not harness.engine.effects.is_open(order.position), "what has not left yet never leaves"
    harness.mute = set()
    harness.go()
    assert not harness.armed, "what comes after it is disarmed again"
    assert len(answers) == len(harness.of(PlaArmAnswered)) == 2


@each("cancelled", [True, False])
def test_an_order_to_arm_that_is_overtaken_by_disarming_leaves_nothing_armed(cancelled: bool) -> None:
    """Whether the line can still take it back, or it comes to the device after all."""
    harness = PlaHarness().link().mode("SUGGEST", "EXECUTE")
    harness.mute = {HidArmRequested}
    harness.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    (order,) = harness.of(HidArmRequested)
    disarm = harness.fact(PlaDisarmRequested(operator_id=ALICE, channel="cli")).events
    assert [event.data.request for event in disarm if isinstance(event.data, EffectCancelRequested)] == [order.position]
    if not cancelled:
        harness.armed = True
        harness.finish(order.position, HidArmed(request=order.position, boot_id=BOOT, lease_ms=5000))
    harness.mute = set()
    harness.go()
    assert len(harness.of(HidDisarmRequested)) == (1 if cancelled else 2)
    assert not harness.armed
    assert not harness.warden.armed
    assert harness.warden.mode == "EXECUTE"


def test_a_silent_answer_carries_what_the_performer_said() -> None:
    harness = PlaHarness().link().mode("SUGGEST", "EXECUTE")
    answering(
        harness,
        "hid.arm_requested",
        lambda event: HidSilent(request=event.position, boot_id="", code="no_device", text="no line", sent=False),
    )
    harness.arm()
    assert harness.last(PlaArmAnswered).reasons == ["the device did not answer: no line"]
