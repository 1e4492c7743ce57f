"""The HID link: arms the device, hands it what was approved, and finds out what became of it; pure
(docs/design.md §16.4, §16.6).

It holds each execution to the approval that it has heard of itself: for these bytes, not used, not expired, in EXECUTE,
armed, with the kill switch ready. The order to type is given once. When its answer is lost the device is asked what it
knows, and if nobody can tell, that is said; nothing is ever typed a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pmagent.actors.core.integrity import ENGINE
from pmagent.actors.core.ledger import GATE
from pmagent.actors.pla.hid import arming, execution
from pmagent.actors.pla.hid.state import EARLIER_LEASE_SECONDS, HID, Arming, HidState, Link
from pmagent.actors.pla.hid.tripping import WARDEN, disarmed, lapsed, tripped
from pmagent.actors.pla.switch import latched
from pmagent.actors.pla.violations import violation
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsPaused
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import EFFECT_ENDS, ActorHalted, ActorResumed, EffectEnd, EffectRefused, RequestRefused
from pmagent.contracts.hid import (
    ARM_SUBJECT,
    HidArmed,
    HidArmRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidEnded,
    HidLeaseEnded,
    HidLeaseRequested,
    HidLinked,
    HidLost,
    HidPinged,
    HidPingRequested,
    HidPrepared,
    HidRefused,
    HidReported,
    HidSilent,
    HidTold,
    HidTripped,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import LEASE_SECONDS
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaArmRequested,
    PlaDisarmRequested,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaSessionBegan,
    PlaSessionEnded,
)
from pmagent.events.event import Event, time_after

OA: Final = "oa"
"""The actor that grants permits."""

SETTLE_SECONDS: Final = 2.0
"""So long after arming or disarming a report may still be one from before."""

LOST: Final = {"stale": "heartbeat_stale", "silent": "heartbeat_stale", "reset": "device_reset"}
"""How a device was lost -> the code of what that trips; else link_lost."""

_OUTCOMES: Final = (
    HidArmed, HidDisarmed, HidPinged, HidLeaseEnded, HidPrepared, HidEnded, HidTold, HidRefused, HidSilent,
)  # fmt: skip

replace = msgspec.structs.replace


class HidLink:
    """See the module."""

    name = HID
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        DaemonStarted, DaemonStopped, ActorHalted, ActorResumed, EffectsPaused, HidLinked, HidReported, HidLost,
        OaPermitGranted, OaPermitRefused, RequestRefused, PlaSessionBegan, PlaSessionEnded, PlaModeChanged, PlaApproved,
        PlaArmRequested, PlaDisarmRequested, PlaExecutionRequested, TimerFired, *_OUTCOMES, *EFFECT_ENDS,
    ))

    def initial(self) -> HidState:
        """No device."""
        return HidState()

    def evolve(self, state: HidState, event: Event) -> HidState:
        """Fold an input or a decision of its own."""
        if event.kind == "decision" and event.actor == HID:
            return execution.own(_own(state, event), event)
        if state.over:
            state = replace(state, over=0)
        if event.kind == "decision":
            return _observed(state, event)
        return execution.fact(_ended(_fact(state, event), event), event)

    def decide(self, state: HidState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions that follow from an input."""
        if not _is_genuine(event):
            return []
        match event.data:
            case PlaArmRequested() as asked:
                return list(arming.on_request(state, event, asked))
            case PlaDisarmRequested() as asked:
                return list(arming.on_disarm(state, event, asked))
            case PlaExecutionRequested() as asked:
                return list(execution.on_request(state, event, asked))
            case TimerFired(request=request):
                return list(arming.on_watch(state, event, request))
            case OaPermitGranted(request=request) | OaPermitRefused(request=request) | RequestRefused(request=request):
                return list(_answered(state, event, request))
        if isinstance(event.data, (*_OUTCOMES, EffectEnd)):
            return list(_answered(state, event, event.data.request))
        return list(_news(state, event))


def _is_genuine(event: Event) -> bool:
    """Whether it is from whom such a thing comes: an operator's wish to arm, what the device says, and how effects end,
    are facts, permits are the OA's, and refusals the gate's or the engine's. Any other author is not believed; a wish
    to disarm may be anybody's."""
    match event.data:
        case OaPermitGranted() | OaPermitRefused():
            return (event.kind, event.actor) == ("decision", OA)
        case EffectRefused() | RequestRefused():
            return event.kind == "decision" and event.actor in (GATE, ENGINE)
    if isinstance(event.data, (PlaArmRequested, HidLinked, HidReported, HidLost, *_OUTCOMES, EffectEnd)):
        return event.kind == "fact"
    return True


def _answered(state: HidState, event: Event, request: int) -> Iterator[Payload | Correlated]:
    """The request at position ``request`` has an answer, of whatever kind."""
    if state.arming is not None and state.arming.at == request:
        yield from arming.on_answer(state, event, state.arming)
    elif state.execution is not None and state.execution.at == request:
        yield from execution.on_answer(state, event, state.execution)
    elif request == state.ping:
        yield from arming.on_ping(state, event)
    elif isinstance(event.data, HidPinged | HidLeaseEnded) and (stands := _not_ready(state)):
        # The answer to a ping of the process before: what it tells of the switch counts all the same.
        yield from tripped(state, "killed", f"the kill switch is {stands}")
    elif isinstance(event.data, HidDisarmed) and state.armed:
        # Asked for before it was armed, by a process before perhaps: what holds now is what the device says last.
        yield from tripped(state, "lease_lost", "the device says that it is disarmed")
        yield from arming.on_disarmed(state, event)
    elif state.over:
        yield from arming.on_disarmed(state, event)
    elif isinstance(event.data, HidArmed):  # of a wish that is forgotten: nobody wants it armed any more
        yield from disarmed(state, "nobody waits for it any more", always=True)


def _not_ready(state: HidState) -> str:
    """How the switch of the linked device stands, if it is not ready; else ""."""
    return state.link.kill_switch_state if state.link is not None and state.link.kill_switch_state != "ARMED" else ""


def _news(state: HidState, event: Event) -> Iterator[Payload | Correlated]:
    """Inputs from the line, the mode and the process."""
    match event.data:
        case HidLinked() as linked:
            yield from _linked(state, linked)
        case HidReported() as report if state.link is not None and report.boot_id == state.link.boot_id:
            if report.kill_switch_state != "ARMED":
                what = f"the kill switch is {report.kill_switch_state}"
                yield from tripped(state, "killed", what)
            elif report.mode == "EXECUTE" and _unexplained(state, event):
                reason = "the device says EXECUTE, and nobody has armed it"
                yield violation("mode_mismatch", "device_status", reason, HID, session_id=state.session_id)
                yield from tripped(state, "mode_mismatch", reason)
                yield from disarmed(state, reason, always=True)
            elif report.mode != "EXECUTE" and _lapsed(state, event):
                yield from tripped(state, "lease_lost", "the device says that it is disarmed")
        case HidLost(code=code, text=text):
            yield from tripped(state, LOST.get(code, "link_lost"), text)
        case PlaModeChanged(mode=mode, why=why) if event.actor == WARDEN and mode != "EXECUTE":
            yield from lapsed(state, f"the mode is {mode}: {why}")
        case EffectsPaused() if event.actor == GATE:
            yield from lapsed(state, "effects are paused")
        case DaemonStarted() | DaemonStopped():
            yield from lapsed(state, "the process ended before the device was told to type", code="restarted")
            yield from arming.unanswered(state, "the process ended before the device answered")
        case ActorHalted(name=name) if name == WARDEN:
            yield from tripped(state, "halted", "the warden is halted")
        case ActorResumed(name=name) if name == HID:
            yield from tripped(state, "halted", "the HID link was halted")
            yield from execution.after_halt(state, event)
            yield from arming.unanswered(state, "the HID link was halted")


def _linked(state: HidState, linked: HidLinked) -> Iterator[Payload | Correlated]:
    """A hello disarms the device, and one with another boot has forgotten everything."""
    if not linked.compatible:
        yield violation("contract_mismatch", "hello", linked.text, HID, session_id=state.session_id)
        yield from tripped(state, "contract_mismatch", linked.text)
    elif linked.kill_switch_state != "ARMED":
        yield from tripped(state, "killed", f"the kill switch is {linked.kill_switch_state}")
    elif state.armed or state.arming is not None:
        yield from tripped(state, "lease_lost", "the device began anew")
    yield from execution.on_linked(state, linked)


def _unexplained(state: HidState, event: Event) -> bool:
    """Whether nothing that was asked for could have armed the device."""
    return not state.armed and state.arming is None and not state.disarming and event.time >= state.settled_at


def _lapsed(state: HidState, event: Event) -> bool:
    """Whether a report that the device is not armed is no older than its arming. With earlier contracts its answers to
    pings told that."""
    by_line = state.link is not None and state.link.by_line
    return by_line and state.armed and event.time >= time_after(state.armed_at, SETTLE_SECONDS)


def _fact(state: HidState, event: Event) -> HidState:
    match event.data:
        case DaemonStarted() | DaemonStopped():
            lasting = isinstance(event.data, DaemonStarted) and event.data.surface == "daemon"
            return replace(
                state, link=None, armed=False, ping=0, watch=0, disarming={}, approvals={}, mode="OBSERVE",
                lasting=lasting,
            )  # fmt: skip
        case HidLinked() as linked:
            link = Link(
                linked.device_id, linked.boot_id, linked.compatible, linked.text[:500], linked.kill_switch_state,
                linked.by_line, linked.undeclared,
            )  # fmt: skip
            return replace(state, link=link, lease_s=LEASE_SECONDS if linked.by_line else EARLIER_LEASE_SECONDS)
        case HidLost():
            return replace(state, link=None)
        case (
            HidReported(boot_id=boot, kill_switch_state=kill)
            | HidPinged(boot_id=boot, kill_switch_state=kill)
            | HidLeaseEnded(boot_id=boot, kill_switch_state=kill)
        ):
            if state.link is None or state.link.boot_id != boot:
                return state
            stands = latched(state.link.kill_switch_state, kill)
            heard = replace(state, link=replace(state.link, kill_switch_state=stands))
            return replace(heard, heard_at=event.time) if state.armed else heard
        case PlaDisarmRequested():
            return replace(state, wishes={**state.wishes, event.position: event.correlation})
        case ActorResumed(name=name) if name == WARDEN:
            return replace(state, unwarded=False)
    return state


def _ended(state: HidState, event: Event) -> HidState:
    """A disarm request has come to its end."""
    request = getattr(event.data, "request", 0)
    if request not in state.disarming:
        return state
    left = {at: wish for at, wish in state.disarming.items() if at != request}
    settled_at = time_after(event.time, SETTLE_SECONDS)
    return replace(state, disarming=left, over=state.disarming[request], settled_at=settled_at)


def _observed(state: HidState, event: Event) -> HidState:
    """Decisions of others; the warden's are heeded, and the engine's about it."""
    match event.data:
        case ActorHalted(name=name) if name == WARDEN:
            return replace(state, unwarded=True)
        case RequestRefused(request=request) if request in state.wishes:
            return replace(state, wishes={at: whose for at, whose in state.wishes.items() if at != request})
    if event.actor != WARDEN:
        return state
    match event.data:
        case PlaSessionBegan(session_id=session_id):
            return replace(state, session_id=session_id)
        case PlaSessionEnded():
            return replace(state, session_id="", approvals={})
        case PlaModeChanged(session_id=session_id, mode=mode, action_class=action_class):
            approvals = state.approvals if mode == "EXECUTE" else {}
            return replace(state, session_id=session_id, mode=mode, action_class=action_class, approvals=approvals)
        case PlaApproved(proposal_id=name, executes=True) as approved:
            return replace(state, approvals={**state.approvals, name: approved})
    return state


def _own(state: HidState, event: Event) -> HidState:
    match event.data:
        case OaPermitRequested(subject=subject) if subject.startswith(ARM_SUBJECT):
            return replace(state, arming=Arming(event.causation, event.correlation, event.position))
        case HidArmRequested() if state.arming is not None:
            return replace(state, arming=replace(state.arming, at=event.position, asked=True))
        case PlaArmAnswered(request=request, armed=armed):
            wishes = {at: whose for at, whose in state.wishes.items() if at != request}
            if state.arming is None or state.arming.request != request:
                return replace(state, wishes=wishes)
            return replace(state, arming=None, armed=armed, armed_at=event.time, heard_at=event.time, wishes=wishes)
        case HidPingRequested() | HidLeaseRequested():
            return replace(state, ping=event.position)
        case TimerRequested():
            return replace(state, watch=event.position)
        case HidDisarmRequested():
            wish = event.causation if event.causation in state.wishes else 0
            return replace(state, armed=False, ping=0, watch=0, disarming={**state.disarming, event.position: wish})
        case HidTripped():
            return replace(state, mode="OBSERVE", approvals={}, armed=False, ping=0, watch=0)
    return state
