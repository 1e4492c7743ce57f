"""Each condition of typing by itself, at the HID link: with all of them it goes on, and without any one of them it does
not, whatever the warden, the gate and the device would have said."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.pla.hid.actor import HidLink
from pmagent.actors.pla.hid.execution import PERMIT_SECONDS_MIN
from pmagent.actors.pla.hid.state import Arming, Execution, HidState, Link
from pmagent.contracts.control import EffectsPaused
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectRefused, EffectTimedOut, RequestRefused
from pmagent.contracts.hid import (
    HidArmed,
    HidArmRequested,
    HidCommitRequested,
    HidDisarmRequested,
    HidEnded,
    HidLinked,
    HidLost,
    HidPingRequested,
    HidPrepared,
    HidPrepareRequested,
    HidReported,
    HidTripped,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmRequested,
    PlaDisarmRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaSessionEnded,
)
from pmagent.events.event import Event
from tests.support.cases import each

TEXT, OTHER = TypeText(text="ls"), TypeText(text="rm")
BOOT, SESSION, NAME, EXEC = "0" * 16, "pla-1", "prop-0001", "exec-0001"
NOW, UNTIL = "2026-11-22T09:00:00.000000Z", "2026-11-22T09:01:00.000000Z"

APPROVED = PlaApproved(
    request=7, session_id=SESSION, proposal_id=NAME, digest=digest(TEXT), operator_id="ada", channel="cli",
    expires_at=UNTIL, executes=True, credential_acknowledged=False,
)  # fmt: skip
ASKED = PlaExecutionRequested(
    session_id=SESSION, proposal_id=NAME, execution_id=EXEC, approval=7, digest=digest(TEXT), action=TEXT,
    masked=False, operator_id="ada", decided_at=NOW,
)  # fmt: skip
LINK = Link("device-1", BOOT, compatible=True, text="", kill_switch_state="ARMED")
READY = HidState(session_id=SESSION, mode="EXECUTE", link=LINK, armed=True, approvals={NAME: APPROVED}, lasting=True)
UNDER_WAY = Execution(SESSION, NAME, EXEC, digest(TEXT), TEXT, BOOT, "feature_work", UNTIL, at=40)

replace = msgspec.structs.replace

LACKS: dict[str, dict[str, Any]] = {
    "mode": {"mode": "SUGGEST"},
    "warden": {"unwarded": True},
    "device": {"link": None},
    "contract": {"link": replace(LINK, compatible=False)},
    "switch": {"link": replace(LINK, kill_switch_state="DISABLED")},
    "arming": {"armed": False},
}


def happened(data: Any, actor: str, kind: Any = "decision", time: str = NOW) -> Event:
    return Event(
        position=41, time=time, id="41", kind=kind, actor=actor, type=type_of(data), correlation=SESSION, causation=40,
        data=data, raw=encode(data),
    )  # fmt: skip


def decided(state: HidState, event: Event) -> set[type]:
    made = HidLink().decide(state, event)
    return {type(one.payload if isinstance(one, Correlated) else one) for one in made}


def asked(actor: str = "warden", time: str = NOW, **changes: Any) -> Event:
    return happened(replace(ASKED, **changes), actor, time=time)


def test_with_every_condition_it_is_handed_over() -> None:
    assert HidPrepareRequested in decided(READY, asked())


@each("lack", LACKS)
def test_without_one_it_is_not_handed_over(lack: str) -> None:
    assert HidPrepareRequested not in decided(replace(READY, **LACKS[lack]), asked())


@each(
    "event",
    [
        asked(actor="brain"), asked(time=UNTIL), asked(approval=8), asked(operator_id="eve"),
        asked(digest=digest(OTHER), action=OTHER), asked(action=OTHER), asked(proposal_id="prop-0002"),
    ],
)  # fmt: skip
def test_what_was_not_approved_just_so_is_not_handed_over(event: Event) -> None:
    assert HidPrepareRequested not in decided(READY, event)


def test_what_cannot_be_typed_is_not_handed_over() -> None:
    bad = TypeText(text="x" * 1025)
    state = replace(READY, approvals={NAME: replace(APPROVED, digest=digest(bad))})
    assert HidPrepareRequested not in decided(state, asked(digest=digest(bad), action=bad))


def test_while_another_is_under_way_it_is_not_handed_over() -> None:
    state = replace(READY, execution=replace(UNDER_WAY, execution_id="exec-0002"))
    assert HidPrepareRequested not in decided(state, asked())


def prepared(time: str = NOW, **changes: Any) -> Event:
    told = HidPrepared(request=40, boot_id=BOOT, execution_id=EXEC, digest=digest(TEXT), of=4)
    return happened(replace(told, **changes), "hid", "fact", time)


def granted(time: str = NOW, actor: str = "oa") -> Event:
    permit = OaPermitGranted(
        request=40, action="feature_work", subject=f"hid:{EXEC}:{digest(TEXT)}", holder="hid", uses=1, mode="NORMAL",
        expires_at=UNTIL,
    )  # fmt: skip
    return happened(permit, actor, time=time)


STEPS: dict[str, tuple[Any, Any]] = {"prepare": (prepared, OaPermitRequested), "permit": (granted, HidCommitRequested)}


@each("step", STEPS)
def test_with_every_condition_it_goes_on(step: Any) -> None:
    event, wanted = STEPS[step]
    assert wanted in decided(replace(READY, execution=replace(UNDER_WAY, step=step)), event())


@each("step", STEPS)
@each("lack", [*LACKS, "boot", "time"])
def test_without_one_it_goes_no_further(step: Any, lack: str) -> None:
    event, wanted = STEPS[step]
    changes = {**LACKS, "boot": {"link": replace(LINK, boot_id="1" * 16)}, "time": {}}[lack]
    state = replace(READY, execution=replace(UNDER_WAY, step=step), **changes)
    assert wanted not in decided(state, event(UNTIL if lack == "time" else NOW))


@each("event", [prepared(boot_id="1" * 16), prepared(execution_id="exec-0002"), prepared(digest=digest(OTHER))])
def test_what_the_device_holds_is_what_was_approved(event: Event) -> None:
    assert OaPermitRequested not in decided(replace(READY, execution=UNDER_WAY), event)


def test_a_permit_is_the_oas() -> None:
    state = replace(READY, execution=replace(UNDER_WAY, step="permit"))
    assert HidCommitRequested not in decided(state, granted(actor="brain"))


# --- what is remembered ---------------------------------------------------------------------------------------------


def remembered(state: HidState, data: Any, actor: str = "warden", kind: Any = "decision") -> HidState:
    return HidLink().evolve(state, happened(data, actor, kind))


EMPTY = replace(READY, approvals={})


@each(
    "data, actor", [(APPROVED, "brain"), (replace(APPROVED, executes=False), "warden")]
)  # fmt: skip
def test_what_is_no_approval_to_type_is_not_kept(data: Any, actor: str) -> None:
    assert remembered(EMPTY, APPROVED).approvals == {NAME: APPROVED}
    assert remembered(EMPTY, data, actor).approvals == {}


FALLS = {
    "mode": (
        PlaModeChanged(session_id=SESSION, previous="EXECUTE", mode="SUGGEST", who="ada", channel="cli",
                       code="requested", why="x"), "warden", "decision",
    ),
    "start": (DaemonStarted(version="0", python="3", surface="daemon"), "daemon", "fact"),
    "stop": (DaemonStopped(reason="x"), "daemon", "fact"),
    "trip": (HidTripped(session_id=SESSION, boot_id=BOOT, code="killed", text="x"), "hid", "decision"),
}  # fmt: skip


@each("fall", FALLS)
def test_with_what_ends_typing_go_approvals_and_mode(fall: str) -> None:
    after = remembered(READY, *FALLS[fall])
    assert (after.approvals, after.mode == "EXECUTE") == ({}, False)


@each("fall", ["start", "stop", "trip"])
def test_with_what_ends_typing_goes_arming(fall: str) -> None:
    assert not remembered(READY, *FALLS[fall]).armed


def test_with_the_session_go_its_approvals() -> None:
    assert remembered(READY, PlaSessionEnded(session_id=SESSION, state="complete", reason="x")).approvals == {}


def test_what_is_handed_over_has_used_its_approval() -> None:
    prepare = HidPrepareRequested(
        boot_id=BOOT, execution_id=EXEC, proposal_id=NAME, digest=digest(TEXT), action=TEXT, masked=False,
        operator_id="ada", decided_at=NOW,
    )  # fmt: skip
    assert remembered(READY, prepare, "hid").approvals == {}


# --- arming ---------------------------------------------------------------------------------------------------------

ARMING = replace(READY, armed=False, arming=Arming(38, SESSION, 40))
ARMED = happened(HidArmed(request=40, boot_id=BOOT, lease_ms=5000), "hid", "fact")
ARM_LACKS = [lack for lack in LACKS if lack != "arming"]


@each("lack", ["", *ARM_LACKS])
def test_without_one_it_is_not_armed(lack: str) -> None:
    assert (HidArmRequested in decided(replace(ARMING, **LACKS.get(lack, {})), granted())) == (not lack)


@each("lack", ["", *ARM_LACKS])
def test_what_was_armed_and_may_not_be_any_more_is_disarmed(lack: str) -> None:
    waiting = replace(ARMING, arming=Arming(38, SESSION, 40, asked=True), **LACKS.get(lack, {}))
    made = decided(waiting, ARMED)
    assert (HidPingRequested in made) == (not lack)
    assert (HidDisarmRequested in made) == (lack not in ("", "device"))


@each(
    "data, actor, kind",
    [
        (ActorHalted(name="warden", input=1, error="ValueError", place="x"), "engine", "decision"),
        (ActorResumed(name="hid"), "operator", "fact"),
        (HidLost(boot_id=BOOT, code="unplugged", text="x"), "hid", "fact"),
    ],
)  # fmt: skip
def test_what_ends_trust_in_the_link_trips_it(data: Any, actor: str, kind: Any) -> None:
    made = decided(READY, happened(data, actor, kind))
    assert {HidTripped, HidDisarmRequested} <= made


@each("start", ["start", "stop"])
@each("step", STEPS)
def test_what_a_process_had_not_ordered_ends_with_it(step: Any, start: str) -> None:
    event = happened(*FALLS[start])
    state = HidLink().evolve(replace(READY, execution=replace(UNDER_WAY, step=step)), event)
    assert PlaExecuted in decided(state, event)


def test_in_a_pause_what_is_not_ordered_ends_and_the_device_is_disarmed() -> None:
    paused = EffectsPaused(request=40, since=40, operator_id="ada", channel="cli", reason="x")
    state = replace(READY, execution=replace(UNDER_WAY, step="permit"))
    assert {PlaExecuted, HidDisarmRequested} <= decided(state, happened(paused, "gate"))


@each(
    "data", [EffectRefused(request=40, reasons=["x"], mend=[]), RequestRefused(request=40, name="oa", reason="halted")]
)
@each("step", ["permit", "commit"])
def test_only_the_gate_and_the_engine_refuse(step: Any, data: Any) -> None:
    assert decided(replace(READY, execution=replace(UNDER_WAY, step=step)), happened(data, "brain")) == set()


# --- the permit, and whose word counts ------------------------------------------------------------------------------

LATE, TOO_LATE = "2026-11-22T09:00:59.500000Z", "2026-11-22T09:00:59.999999Z"


@each("time, seconds", [(NOW, 60.0), (LATE, 0.5), (TOO_LATE, PERMIT_SECONDS_MIN)])
def test_the_permit_for_an_order_is_for_these_bytes_and_lasts_no_longer_than_the_approval(
    time: str, seconds: float
) -> None:
    (asked,) = HidLink().decide(replace(READY, execution=UNDER_WAY), prepared(time))
    assert isinstance(asked, Correlated)
    assert asked.payload == OaPermitRequested(
        action="feature_work", subject=f"hid:{EXEC}:{digest(TEXT)}", holder="hid", seconds=seconds
    )


def test_the_permit_for_arming_is_for_this_device_and_lasts_half_a_minute() -> None:
    wish = happened(PlaArmRequested(operator_id="ada", channel="cli"), "operator", "fact")
    (asked,) = HidLink().decide(replace(READY, armed=False), wish)
    assert asked == OaPermitRequested(action="feature_work", subject="hid:arm:device-1", holder="hid", seconds=30.0)


@each("actor", ["brain", "operator"])
def test_a_wish_to_arm_is_an_operators_and_one_to_disarm_may_be_anybodys(actor: str) -> None:
    arm = happened(PlaArmRequested(operator_id="ada", channel="cli"), actor)
    assert decided(replace(READY, armed=False), arm) == set()
    disarm = happened(PlaDisarmRequested(operator_id="ada", channel="cli"), actor)
    assert HidDisarmRequested in decided(READY, disarm)


REFUSALS = (EffectRefused(request=40, reasons=["x"], mend=[]), RequestRefused(request=40, name="oa", reason="halted"))
COMMITTED = replace(READY, execution=replace(UNDER_WAY, step="commit"))
PERMITTED = replace(READY, execution=replace(UNDER_WAY, step="permit"))
REFUSED = OaPermitRefused(request=40, action="feature_work", subject="x", reasons=["x"], mend=[])
LINKED = HidLinked(
    device_id="device-1", boot_id="1" * 16, port="x", contract_version="1.0.0", contract_hash="0" * 64,
    firmware_version="1.0.0", reset_reason="POWER_ON", kill_switch_state="ARMED", compatible=True,
)  # fmt: skip
REPORTED = HidReported(boot_id=BOOT, mode="EXECUTE", led_state=True, kill_switch_state="DISABLED")
LOST = HidLost(boot_id=BOOT, code="unplugged", text="x")
ENDED = HidEnded(request=40, boot_id=BOOT, execution_id=EXEC, state="DONE", done=4, of=4)

GENUINE: list[tuple[HidState, Any, str, Any]] = [
    (COMMITTED, REFUSALS[0], "gate", "decision"),
    (COMMITTED, REFUSALS[0], "engine", "decision"),
    (PERMITTED, REFUSALS[1], "engine", "decision"),
    (PERMITTED, granted().data, "oa", "decision"),
    (PERMITTED, REFUSED, "oa", "decision"),
    (replace(READY, execution=UNDER_WAY), prepared().data, "line", "fact"),
    (COMMITTED, ENDED, "line", "fact"),
    (COMMITTED, EffectTimedOut(request=40, limit_s=1.0), "runtime", "fact"),
    (READY, LINKED, "line", "fact"),
    (READY, REPORTED, "line", "fact"),
    (READY, LOST, "line", "fact"),
]


@each("state, data, whose, kind", GENUINE)
def test_each_answer_is_believed_of_whose_it_is_alone(state: HidState, data: Any, whose: str, kind: str) -> None:
    assert decided(state, happened(data, whose, kind))
    assert decided(state, happened(data, whose, "fact" if kind == "decision" else "decision")) == set()
    assert kind == "fact" or decided(state, happened(data, "brain", kind)) == set()
