"""Arming, the lease and its pings, and disarming; pure (docs/design.md §16.6).

A lease that nobody renews ends at the device. Once the first ping was answered, whoever holds the line renews it
(``hid.lease_requested``), and tells when it ends; a device that is not heard for three seconds is lost. With a device
of a contract before 1.1, as in logs of earlier releases, each ping stands in the log, and a timer looks whether the
device was heard in the last three seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pmagent.actors.pla.hid.state import HID, Arming, HidState
from pmagent.actors.pla.hid.tripping import disarmed, lapsed, tripped
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import EffectEnd, EffectRefused, RequestRefused
from pmagent.contracts.hid import (
    HidArmed,
    HidArmRequested,
    HidDisarmed,
    HidLeaseEnded,
    HidLeaseRequested,
    HidPinged,
    HidPingRequested,
    HidRefused,
    HidSilent,
)
from pmagent.contracts.hid import arm_scope as scope_of
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import HEARTBEAT_SECONDS
from pmagent.contracts.pla import PING_SECONDS as LINE_PING_SECONDS
from pmagent.contracts.pla_events import PlaArmAnswered, PlaArmRequested, PlaDisarmRequested
from pmagent.events.event import Event, time_after

PING_SECONDS: Final = 1.0
"""Between the answer to a ping and the next one, where each stands in the log."""
AGAIN_SECONDS: Final = 0.5
"""Between a ping without an answer and the next one."""
PERMIT_SECONDS: Final = 30.0
"""A permit for arming is used as soon as it is granted."""

replace = msgspec.structs.replace

Objection = tuple[str, str]
"""Why not, and what would mend it."""

_RAISE: Final = "pmagent pla mode raises it, one step at a time"
_TO_EXECUTE: Final = {
    "OBSERVE": "pmagent pla mode SUGGEST, then pmagent pla mode EXECUTE, then pmagent pla arm",
    "SUGGEST": "pmagent pla mode EXECUTE, then pmagent pla arm",
}


def objections(state: HidState) -> list[Objection]:
    """The objections to typing with the device as it is, armed or not."""
    found: list[Objection] = []
    if state.mode != "EXECUTE":
        found.append((f"the mode is {state.mode}, not EXECUTE", _RAISE))
    return found + _device_objections(state)


def _device_objections(state: HidState) -> list[Objection]:
    found: list[Objection] = []
    link = state.link
    if state.unwarded:
        found.append(("the warden is halted", "start again with a version that does not fail"))
    if link is None:
        found.append(("no device is linked", "pmagent pla device shows what there is"))
    elif not link.compatible:
        found.append((f"the device's contract is another: {link.text}", "flash the firmware of this version"))
    elif link.kill_switch_state != "ARMED":
        what = f"the kill switch is {link.kill_switch_state}"
        found.append((what, "close the switch, and cut the device's power once"))
    return found


def on_request(state: HidState, event: Event, asked: PlaArmRequested) -> Iterator[Payload | Correlated]:
    """An operator wants the device armed: the OA is asked first."""
    found = objections(state)
    if asked.keeps_mode and state.mode != "EXECUTE":  # last: the mode rises only once the device is ready
        raising = (f"the mode stays {state.mode}; arming needs EXECUTE", _TO_EXECUTE[state.mode])
        found = [*_device_objections(state), raising]
    if state.arming is not None:
        found.append(("the device is being armed already", "wait for that"))
    if state.disarming:  # its answer would come after that to arming, and nobody could tell what holds
        found.append(("the device is being disarmed", "ask again in a moment"))
    if state.execution is not None:
        found.append(("an execution is not over", "wait for its end"))
    link = state.link
    if found or link is None:
        yield _answer(state, event.position, found, armed=state.armed)
    elif state.armed:
        yield _answer(state, event.position, [], armed=True)
    else:
        scope = scope_of(state.action_class, link.device_id)
        yield OaPermitRequested(action=scope.action, subject=scope.subject, holder=HID, seconds=PERMIT_SECONDS)


def on_answer(state: HidState, event: Event, arming: Arming) -> Iterator[Payload | Correlated]:
    """The answers of the OA, and then of the device."""
    data = event.data
    refused: list[Objection] = []
    match data:
        case OaPermitGranted() if not arming.asked:
            refused = objections(state)
            if not refused and state.link is not None:
                link = state.link
                yield Correlated(
                    HidArmRequested(
                        permit=event.position, device_id=link.device_id, boot_id=link.boot_id,
                        action_class=state.action_class,
                    ),
                    arming.correlation,
                )  # fmt: skip
                return
        case OaPermitRefused(reasons=reasons, mend=mend):
            hint = mend[0] if mend else "pmagent status"
            refused = [(f"it is not permitted: {reason}"[:500], hint[:500]) for reason in reasons[:10]]
        case RequestRefused(name=name, reason=reason):
            refused = [(f"{name} is {reason}", "start again with a version that does not fail")]
        case HidArmed(boot_id=boot_id):
            refused = objections(state)
            if not refused and state.link is not None and state.link.boot_id == boot_id:
                yield Correlated(_answer(state, arming.request, [], armed=True), arming.correlation)
                if state.link.by_line:
                    yield HidPingRequested(boot_id=boot_id, at=time_after(event.time, LINE_PING_SECONDS))
                    return
                yield HidPingRequested(boot_id=boot_id, at=time_after(event.time, PING_SECONDS))
                yield TimerRequested(at=time_after(event.time, HEARTBEAT_SECONDS), name="heartbeat")
                return
            refused = refused or [("another device answered", "ask again")]
        case HidRefused(code=code, text=text):
            refused = [(f"the device refused: {code}: {text}"[:500], "pmagent pla device shows how it stands")]
        case HidSilent(text=text):
            refused = [(f"the device did not answer: {text}"[:500], "pmagent pla device shows what there is")]
        case _:
            refused = [(f"it was not armed ({event.type})", f"pmagent log why {event.position}")]
    yield Correlated(_answer(state, arming.request, refused, armed=False), arming.correlation)
    if arming.asked and not isinstance(data, HidRefused | EffectRefused):
        yield from disarmed(replace(state, arming=None), "arming did not come to its end", always=True)
    if isinstance(data, HidRefused) and data.code == "KILLED":
        yield from tripped(replace(state, arming=None), "killed", "the device says that it is killed")


def on_ping(state: HidState, event: Event) -> Iterator[Payload | Correlated]:
    """The answer to a ping, the end of a lease, or none."""
    if not state.armed or state.link is None:
        return
    match event.data:
        case (
            HidPinged(boot_id=boot_id, armed=armed, kill_switch_state=kill)
            | HidLeaseEnded(boot_id=boot_id, armed=armed, kill_switch_state=kill)
        ):
            if boot_id != state.link.boot_id:
                yield from tripped(state, "device_reset", "another device, or the same after a reset, answered")
            elif kill != "ARMED":
                yield from tripped(state, "killed", f"the kill switch is {kill}")
            elif not armed:
                yield from tripped(state, "lease_lost", "the device says that it is not armed")
            elif state.link.by_line:
                yield HidLeaseRequested(boot_id=boot_id)
            else:
                yield HidPingRequested(boot_id=boot_id, at=time_after(event.time, PING_SECONDS))
        case HidRefused(code=code):
            codes = {"BOOT_MISMATCH": "device_reset", "NO_HELLO": "device_reset", "KILLED": "killed"}
            yield from tripped(state, codes.get(code, "lease_lost"), f"the device refused a ping: {code}")
        case data if isinstance(data, EffectEnd) and state.link.by_line:
            yield from tripped(state, "lease_lost", f"nobody renews the lease any more ({event.type})")
        case _:  # silence; the watch decides when it has lasted too long
            yield HidPingRequested(boot_id=state.link.boot_id, at=time_after(event.time, AGAIN_SECONDS))


def on_watch(state: HidState, event: Event, request: int) -> Iterator[Payload | Correlated]:
    """The timer that looks after an armed device."""
    if not state.armed or request != state.watch:
        return
    due = time_after(state.heard_at, HEARTBEAT_SECONDS)
    if event.time >= due:
        yield from tripped(state, "heartbeat_stale", f"the device was not heard since {state.heard_at}")
    else:
        yield TimerRequested(at=due, name="heartbeat")


def on_disarm(state: HidState, event: Event, asked: PlaDisarmRequested) -> Iterator[Payload | Correlated]:
    """Somebody wants it disarmed: what is typed ends, and what was not begun never begins."""
    why = asked.reason or f"{asked.operator_id} disarms"
    if state.link is None:
        lease = f"no device is linked; one that was armed disarms itself within {state.lease_s:g} s"
        yield _unconfirmed(state, event.position, lease)
        return
    yield from lapsed(state, why, code="disarmed", always=True)


def on_disarmed(state: HidState, event: Event) -> Iterator[Payload | Correlated]:
    """The answer to whoever wanted it."""
    correlation = state.wishes.get(state.over)
    if correlation is None:
        return
    if isinstance(event.data, HidDisarmed):
        yield Correlated(_answer(state, state.over, [], armed=False), correlation)
    else:
        lease = f"the device did not answer; its lease ends by itself within {state.lease_s:g} s"
        yield Correlated(_unconfirmed(state, state.over, lease), correlation)


def unanswered(state: HidState, why: str) -> Iterator[Payload | Correlated]:
    """Wishes to disarm whose answer does not come any more."""
    for request, correlation in state.wishes.items():
        yield Correlated(_answer(state, request, [(why, "ask again")], armed=False), correlation)


def _unconfirmed(state: HidState, request: int, lease: str) -> PlaArmAnswered:
    """It is disarmed on this side; the device has not said so."""
    return PlaArmAnswered(
        request=request, session_id=state.session_id, armed=False, accepted=True, reasons=[lease],
        mend=["pmagent pla device shows how it stands"],
    )  # fmt: skip


def _answer(state: HidState, request: int, found: list[Objection], *, armed: bool) -> PlaArmAnswered:
    return PlaArmAnswered(
        request=request, session_id=state.session_id, armed=armed, accepted=not found,
        reasons=[reason for reason, _ in found], mend=[mend for _, mend in found],
    )  # fmt: skip
