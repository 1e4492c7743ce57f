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
from tests.support.pla import ALICE, BOOT, DEVICE, Desk, answering, silent


def test_arming_needs_execute_a_permit_and_a_device() -> None:
    desk = Desk().ready()
    (armed,) = desk.of(HidArmRequested)
    grant = desk.history[armed.data.permit - 1].data
    assert isinstance(grant, OaPermitGranted)
    assert (grant.action, grant.subject) == ("feature_work", f"hid:arm:{DEVICE}")
    answer = desk.last(PlaArmAnswered)
    assert (answer.accepted, answer.armed) == (True, True)


def test_a_kernel_that_forbids_the_work_forbids_arming() -> None:
    desk = Desk(mode="DEGRADED").link().mode("SUGGEST", "EXECUTE").arm()
    answer = desk.last(PlaArmAnswered)
    assert not answer.accepted
    assert answer.reasons[0] == "it is not permitted: feature_work is forbidden in DEGRADED"
    assert desk.of(HidArmRequested) == []


def test_a_session_for_remediation_may_arm_where_the_kernel_is_degraded() -> None:
    desk = Desk(mode="DEGRADED").link().mode("SUGGEST")
    desk.tell(PlaModeRequested(mode="EXECUTE", operator_id=ALICE, channel="cli", action_class="remediation"))
    desk.arm()
    assert desk.last(PlaArmAnswered).armed


def test_arming_what_is_armed_changes_nothing() -> None:
    desk = Desk().ready().arm()
    assert desk.last(PlaArmAnswered).accepted
    assert len(desk.of(HidArmRequested)) == 1


def _killed(event: Event) -> HidRefused:
    return HidRefused(request=event.position, boot_id=BOOT, code="KILLED", text="no")


def _another(event: Event) -> HidArmed:
    return HidArmed(request=event.position, boot_id="f" * 16, lease_ms=5000)


def _failed(event: Event) -> EffectFailed:
    return EffectFailed(request=event.position, error="OSError", place="here")


@each("outcome", [silent, _killed, _another, _failed])
def test_a_device_that_does_not_arm_is_not_armed(outcome: Any) -> None:
    desk = Desk().link().mode("SUGGEST", "EXECUTE")
    answering(desk, "hid.arm_requested", outcome)
    desk.arm()
    answer = desk.last(PlaArmAnswered)
    assert (answer.accepted, answer.armed) == (False, False)
    assert answer.reasons
    assert answer.mend
    assert not desk.engine.states["hid"].armed
    if not isinstance(outcome(desk.of(HidArmRequested)[-1]), HidRefused):
        assert desk.of(HidDisarmRequested), "it may have heard it"


def test_pings_keep_the_lease_while_the_device_is_heard() -> None:
    desk = Desk().ready()
    desk.advance(20)
    assert desk.warden.armed
    assert 15 <= len(desk.of(HidPinged)) <= 21
    times = [event.time for event in desk.of(HidPinged)]
    assert times == sorted(times)


def test_a_device_that_is_not_heard_for_three_seconds_is_not_trusted_any_more() -> None:
    desk = Desk().ready()
    desk.advance(2)
    answering(desk, "hid.ping_requested", silent)
    desk.advance(10)
    assert desk.last(HidTripped).code == "heartbeat_stale"
    assert desk.warden.mode == "OBSERVE"
    heard, changed = desk.of(HidPinged)[-1], desk.of(PlaModeChanged)[-1]
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

    desk = Desk().ready()
    answering(desk, "hid.ping_requested", pinged)
    desk.advance(2)
    assert desk.last(HidTripped).code == code
    assert desk.warden.mode == "OBSERVE"


def test_pings_end_with_the_arming() -> None:
    desk = Desk().ready()
    desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    pings = len(desk.of(HidPingRequested))
    desk.advance(10)
    assert len(desk.of(HidPingRequested)) == pings
    assert not [event for event in desk.engine.effects.open.values() if event.actor == "hid"]


def test_disarming_is_answered_when_the_device_answers_or_does_not() -> None:
    desk = Desk().ready()
    asked = desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    answer = desk.of(PlaArmAnswered)[-1]
    assert (answer.correlation, answer.data.accepted, answer.data.armed) == (asked.correlation, True, False)
    assert answer.data.reasons == []
    desk.arm()
    answering(desk, "hid.disarm_requested", silent)
    desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    assert desk.last(PlaArmAnswered).reasons == ["the device did not answer; its lease ends by itself within 5 s"]
    assert not desk.warden.armed


def test_nothing_is_armed_while_it_is_being_disarmed() -> None:
    desk = Desk().ready()
    desk.mute = {HidDisarmRequested}
    desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    desk.arm()
    assert desk.last(PlaArmAnswered).reasons == ["the device is being disarmed"]
    desk.mute = set()
    desk.go()
    desk.arm()
    assert desk.warden.armed


def test_a_device_that_says_it_is_disarmed_is_believed_whoever_asked_for_it() -> None:
    desk = Desk().ready()
    desk.mute = {HidDisarmRequested}
    desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    (late,) = desk.of(HidDisarmRequested)
    desk.fact(DaemonStarted(version="0", python="3", surface="daemon"))  # it is performed again, and answers late
    desk.finish(desk.of(KernelReadRequested)[-1].position, kernel())
    desk.ready()
    assert desk.warden.armed
    desk.finish(late.position, HidDisarmed(request=late.position, boot_id=BOOT))
    assert desk.last(HidTripped).code == "lease_lost"
    assert not desk.engine.states["warden"].armed
    assert desk.last(PlaModeChanged).mode == "OBSERVE"


def test_disarming_without_a_device_is_answered_at_once() -> None:
    desk = Desk()
    desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    assert desk.last(PlaArmAnswered).accepted
    assert desk.last(PlaArmAnswered).reasons == ["no device is linked; one that was armed disarms itself within 5 s"]


def test_disarming_while_it_is_armed_ends_the_arming_first() -> None:
    desk = Desk().link().mode("SUGGEST", "EXECUTE")
    desk.mute = {HidArmRequested}
    first = desk.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    second = desk.tell(PlaDisarmRequested(operator_id=ALICE, channel="cli"))
    answers = {event.correlation: event.data for event in desk.of(PlaArmAnswered)}
    assert not answers[first.correlation].accepted
    assert answers[second.correlation].accepted
    (order,) = desk.of(HidArmRequested)
    assert not desk.engine.effects.is_open(order.position), "what has not left yet never leaves"
    desk.mute = set()
    desk.go()
    assert not desk.armed, "what comes after it is disarmed again"
    assert len(answers) == len(desk.of(PlaArmAnswered)) == 2


@each("cancelled", [True, False])
def test_an_order_to_arm_that_is_overtaken_by_disarming_leaves_nothing_armed(cancelled: bool) -> None:
    """Whether the line can still take it back, or it comes to the device after all."""
    desk = Desk().link().mode("SUGGEST", "EXECUTE")
    desk.mute = {HidArmRequested}
    desk.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    (order,) = desk.of(HidArmRequested)
    disarm = desk.fact(PlaDisarmRequested(operator_id=ALICE, channel="cli")).events
    assert [event.data.request for event in disarm if isinstance(event.data, EffectCancelRequested)] == [order.position]
    if not cancelled:
        desk.armed = True
        desk.finish(order.position, HidArmed(request=order.position, boot_id=BOOT, lease_ms=5000))
    desk.mute = set()
    desk.go()
    assert len(desk.of(HidDisarmRequested)) == (1 if cancelled else 2)
    assert not desk.armed
    assert not desk.warden.armed
    assert desk.warden.mode == "EXECUTE"


def test_a_silent_answer_carries_what_the_performer_said() -> None:
    desk = Desk().link().mode("SUGGEST", "EXECUTE")
    answering(
        desk,
        "hid.arm_requested",
        lambda event: HidSilent(request=event.position, boot_id="", code="no_device", text="no line", sent=False),
    )
    desk.arm()
    assert desk.last(PlaArmAnswered).reasons == ["the device did not answer: no line"]
