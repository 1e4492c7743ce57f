"""The warden: sessions, modes, proposals and the decisions of operators; pure (docs/design.md §16.3, §16.4).

It decides what may be typed, and types nothing: an approved action goes to the HID link, which believes none of it and
looks for the approval itself. Every irregularity lowers the mode to OBSERVE, in the same reaction as the news.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pmagent.actors.core.ledger import GATE
from pmagent.actors.kernel.mode import judged
from pmagent.actors.pla.ids import derived
from pmagent.actors.pla.switch import latched
from pmagent.actors.pla.violations import HANDLING, Kind, violation
from pmagent.actors.pla.warden import modes
from pmagent.actors.pla.warden.approvals import on_decision
from pmagent.actors.pla.warden.closing import closed, ended_when_idle
from pmagent.actors.pla.warden.state import Device, ProposalView, WardenState, held
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import ActorHalted, ActorResumed
from pmagent.contracts.hid import (
    HidDisarmRequested,
    HidLinked,
    HidLost,
    HidOutcomeUnknown,
    HidPinged,
    HidReported,
    HidTripped,
)
from pmagent.contracts.kernel import WATCHER, KernelObserved
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRequested,
    PlaEndRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaModeRequested,
    PlaObserveRequested,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event

WARDEN: Final = "warden"
BRAIN: Final = "brain"
HID: Final = "hid"
OA: Final = "oa"

_RELIED_ON: Final = frozenset((WATCHER, OA, HID, BRAIN))
"""While one of these is halted nothing may be typed."""

_OPERATORS: Final = (
    PlaModeRequested, PlaEndRequested, PlaObserveRequested, PlaProposalRequested, PlaArmRequested, PlaDecisionRequested,
)
"""Requests of operators: facts. An actor that asks in their name is not heard."""

replace = msgspec.structs.replace


class Warden:
    """See the module."""

    name = WARDEN
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            DaemonStarted, DaemonStopped, KernelObserved, ActorHalted, ActorResumed, EffectsPaused, EffectsResumed,
            HidLinked, HidReported, HidLost, HidDisarmRequested, HidPinged, HidTripped, HidOutcomeUnknown,
            PlaModeRequested, PlaEndRequested, PlaObserveRequested, PlaProposalRequested, PlaArmRequested,
            PlaArmAnswered, PlaContractBroken, PlaDecisionRequested, PlaProposed, PlaExecuted, PlaViolation, TimerFired,
        )
    )

    def initial(self) -> WardenState:
        """No session, OBSERVE, no device."""
        return WardenState()

    def evolve(self, state: WardenState, event: Event) -> WardenState:
        """Fold an input or a decision of its own."""
        if event.actor == WARDEN and event.kind == "decision":
            return _own(state, event)
        if event.kind == "fact":
            return _fact(state, event)
        match event.data:
            case ActorHalted(name=name):
                return replace(state, halted=[*state.halted, name])
            case EffectsPaused(operator_id=who) if event.actor == GATE:
                return replace(state, paused_by=who)
            case EffectsResumed() if event.actor == GATE:
                return replace(state, paused_by="")
            case HidTripped() | HidDisarmRequested() if event.actor == HID:
                return replace(state, armed=False)
            case PlaArmAnswered(armed=armed) if event.actor == HID:
                return replace(state, armed=armed and state.mode == "EXECUTE")
            case PlaExecuted(outcome=outcome, why=why) if event.actor == HID:
                return _ended(state, event.data, "executed" if outcome == "done" else outcome, why)
            case HidOutcomeUnknown(why=why) if event.actor == HID:
                return _ended(state, event.data, "unknown", why)
            case PlaProposed() as proposed if event.actor == BRAIN and _has_place(state, proposed):
                view = ProposalView(proposed=proposed, position=event.position, proposed_at=event.time)
                return held(state, view)
        return state

    def decide(self, state: WardenState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions that follow from an input."""
        if isinstance(event.data, _OPERATORS) and event.kind != "fact":
            return []
        match event.data:
            case DaemonStarted() | DaemonStopped() | KernelObserved() | ActorHalted() | ActorResumed():
                return list(_standing(state, event))
            case PlaModeRequested() as asked:
                return list(modes.on_request(state, event, asked))
            case PlaEndRequested() as asked:
                return list(modes.on_end(state, event, asked))
            case PlaObserveRequested(requested_by=who) | PlaProposalRequested(requested_by=who):
                return list(_asked(state, event, who))
            case PlaArmRequested(operator_id=who, keeps_mode=False):
                return list(_asked(state, event, who))
            case PlaContractBroken() as broken:
                return list(_broken(state, broken))
            case PlaDecisionRequested() as asked:
                return list(on_decision(state, event, asked))
        return list(_from_others(state, event))


def _has_place(state: WardenState, proposed: PlaProposed) -> bool:
    """Whether a proposal may be held: of this session, in a mode for it, none other open or carried out."""
    return (
        proposed.session_id == state.session_id != ""
        and not state.ending
        and state.mode != "OBSERVE"
        and not state.open_proposals
        and state.executing is None
        and proposed.proposal_id not in state.proposals
    )


def _fact(state: WardenState, event: Event) -> WardenState:
    match event.data:
        case DaemonStarted(surface=surface):
            after = replace(
                state, lasting=surface == "daemon", running=True, kernel="", reasons=[], device=None, armed=False,
                expected=state.expected.after(event),
            )
            if state.running:
                return _ending(after, "the process before was cut off", failed=True)
            return _ending(after, "a daemon started") if after.lasting else after
        case DaemonStopped(reason=reason):
            after = replace(state, running=False, device=None, armed=False)
            return _ending(after, f"the daemon stopped ({reason})") if state.lasting else after
        case PlaEndRequested(operator_id=who):
            return _ending(state, f"ended by {who}")
        case KernelObserved():
            expected = state.expected.after(event)
            now = judged(event, expected)
            texts = [reason.text for reason in now.reasons[:3]]
            return replace(state, kernel=now.mode, reasons=texts, expected=expected)
        case ActorResumed(name=name):
            return replace(state, halted=[one for one in state.halted if one != name])
    return _heard(state, event)


def _heard(state: WardenState, event: Event) -> WardenState:
    """The device, as the link tells of it."""
    device = state.device
    match event.data:
        case HidLinked() as linked:
            return replace(state, armed=False, device=_device(linked))
        case HidLost():
            return replace(state, armed=False, device=None)
        case HidReported() as reported if device is not None and reported.boot_id == device.boot_id:
            stands = latched(device.kill_switch_state, reported.kill_switch_state)
            error = "" if reported.error_code == "NONE" else reported.error_message or reported.error_code
            device = replace(device, kill_switch_state=stands, caps_lock=reported.caps_lock, error=error)
            return replace(state, device=device)
        case HidPinged(boot_id=boot, kill_switch_state=kill, armed=armed) if device and boot == device.boot_id:
            stands = latched(device.kill_switch_state, kill)
            return replace(state, armed=armed and state.armed, device=replace(device, kill_switch_state=stands))
    return state


def _ending(state: WardenState, why: str, *, failed: bool = False) -> WardenState:
    """The session, if there is one, is over as soon as nothing is carried out any more."""
    if not state.session_id or state.ending:
        return state
    return replace(state, ending=why[:500], ending_failed=failed)


def _device(linked: HidLinked) -> Device:
    return Device(
        linked.device_id, linked.boot_id, linked.port, linked.firmware_version, linked.compatible, linked.text,
        linked.kill_switch_state, undeclared=linked.undeclared, practice=linked.practice,
    )  # fmt: skip


def _own(state: WardenState, event: Event) -> WardenState:
    match event.data:
        case PlaSessionBegan(session_id=session_id, operator_id=who):
            return replace(
                state, session_id=session_id, operator_id=who, began_at=event.time, ending="", ending_failed=False
            )
        case PlaSessionEnded():
            return replace(state, session_id="", operator_id="", began_at="", ending="", ending_failed=False)
        case PlaModeChanged(mode=mode, action_class=action_class):
            armed = state.armed and mode == "EXECUTE"
            return replace(state, mode=mode, action_class=action_class, armed=armed)
        case TimerRequested(name=name) if name in state.proposals:
            return held(state, replace(state.proposals[name], timer=event.position))
    view = state.proposals.get(getattr(event.data, "proposal_id", ""))
    return state if view is None else held(state, _observed(view, event))


def _observed(view: ProposalView, event: Event) -> ProposalView:
    """A proposal after a decision of the warden on it."""
    match event.data:
        case PlaApproved(operator_id=who, channel=channel, expires_at=until, executes=executes):
            return replace(
                view, stands="executing" if executes else "open", decided_by=who, channel=channel,
                decided_at=event.time, approval=event.position, approval_expires_at=until, outcome="approved",
            )  # fmt: skip
        case PlaRejected(operator_id=who, channel=channel):
            return replace(view, decided_by=who, channel=channel, decided_at=event.time)
        case PlaExecutionRequested(execution_id=execution_id):
            return replace(view, execution_id=execution_id)
        case PlaProposalClosed(outcome=outcome, why=why):
            return replace(view, stands="closed", outcome=outcome, why=why, closed_at=event.time)
    return view


def _standing(state: WardenState, event: Event) -> Iterator[Payload | Correlated]:
    """Consequences of starts, stops, the kernel's mode and halted actors for the mode and the session."""
    match event.data:
        case DaemonStarted() | DaemonStopped() if state.ending:
            yield from modes.lowered(state, "daemon", "restarted", state.ending)
            if state.executing is None:
                yield from ended_when_idle(state)
        case KernelObserved() if state.kernel == "BLOCKED":
            yield from modes.lowered(state, WATCHER, "kernel_blocked", "; ".join(state.reasons)[:500])
        case ActorHalted(name=name) if name in _RELIED_ON:
            yield from modes.lowered(state, "engine", "halted", f"{name} is halted")
            executing = state.executing
            if name == HID and executing is not None:
                yield from closed(executing, "unknown", "the HID link is halted; look at the screen")
            if name == HID and state.device is not None:  # it cannot any more, and what is typed has to end
                disarm = HidDisarmRequested(boot_id=state.device.boot_id, why="the HID link is halted")
                yield Correlated(disarm, state.session_id) if state.session_id else disarm
        case ActorResumed(name=name) if name == WARDEN:
            yield from modes.lowered(state, "engine", "halted", "the warden was halted")
            yield from _concluded(state)
            if state.executing is None:
                yield from ended_when_idle(state)


def _asked(state: WardenState, event: Event, who: str) -> Iterator[Payload | Correlated]:
    """A session stands from the first thing on that somebody asks for. A request in the wrong mode is a violation, and
    is answered by whom it is for; a request to arm that keeps the mode never comes here."""
    session_id = state.session_id
    if not session_id:
        session_id = derived("pla", event)
        yield Correlated(PlaSessionBegan(session_id=session_id, operator_id=who, mode=state.mode), session_id)
    wrong = ""
    if isinstance(event.data, PlaArmRequested) and state.mode != "EXECUTE":
        wrong = f"arming needs EXECUTE, the mode is {state.mode}"
    elif isinstance(event.data, PlaProposalRequested) and state.mode == "OBSERVE":
        wrong = "proposing needs SUGGEST or EXECUTE, the mode is OBSERVE"
    if wrong:
        contract = "action_execute" if isinstance(event.data, PlaArmRequested) else "action_proposal"
        fact = violation("mode_mismatch", contract, wrong, WARDEN, session_id=session_id)
        yield Correlated(fact, session_id)
        yield from modes.lowered(state, WARDEN, "mode_mismatch", wrong)


def _broken(state: WardenState, broken: PlaContractBroken) -> Iterator[Payload | Correlated]:
    """A border refused a document: the violation is the answer."""
    session_id = state.session_id
    kinds: dict[str, Kind] = {kind: kind for kind in HANDLING}
    where = f" at {broken.pointer}" if broken.pointer else ""
    yield violation(
        kinds.get(broken.kind, "schema_validation"), broken.contract, f"{broken.text}{where}", broken.by,
        session_id=session_id,
    )  # fmt: skip
    if broken.kind == "mode_mismatch":
        yield from modes.lowered(state, broken.by, "mode_mismatch", broken.text[:500], channel=broken.channel)


def _from_others(state: WardenState, event: Event) -> Iterator[Payload | Correlated]:
    """Inputs from the brain, the link and the clock."""
    match event.data:
        case EffectsPaused(operator_id=who, channel=channel, reason=reason) if event.actor == GATE:
            why = f"effects are paused: {reason}" if reason else "effects are paused"
            yield from modes.lowered(state, who, "requested", why, channel=channel)
        case HidTripped(code=code, text=text) if event.actor == HID:
            yield from modes.lowered(state, HID, code, text)
        case PlaViolation(kind="mode_mismatch", text=text, by=by):
            yield from modes.lowered(state, by, "mode_mismatch", text)
        case PlaProposed() as proposed:
            yield from _proposed(state, event, proposed)
        case TimerFired(request=request):
            for view in state.open_proposals:
                if view.timer == request:
                    yield from closed(view, "expired", "nobody decided in time", fired=True)
        case PlaExecuted() | HidOutcomeUnknown() if event.actor == HID:
            yield from _concluded(state)


def _proposed(state: WardenState, event: Event, proposed: PlaProposed) -> Iterator[Payload | Correlated]:
    view = state.proposals.get(proposed.proposal_id)
    if view is not None and view.position == event.position:
        yield Correlated(TimerRequested(at=proposed.expires_at, name=proposed.proposal_id), proposed.session_id)
    elif view is None:  # another is open, or the mode fell meanwhile
        refused = PlaProposalClosed(
            session_id=proposed.session_id, proposal_id=proposed.proposal_id, digest=proposed.digest,
            outcome="withdrawn", why=f"there is no place for it in {state.mode}",
        )  # fmt: skip
        yield Correlated(refused, proposed.session_id or event.correlation)


def _ended(state: WardenState, reported: PlaExecuted | HidOutcomeUnknown, outcome: str, why: str) -> WardenState:
    """With how the execution that is not over has ended."""
    view = state.executing
    if view is None or (view.proposed.proposal_id, view.execution_id) != (reported.proposal_id, reported.execution_id):
        return state
    return held(state, replace(view, ended=outcome, why=why))


def _concluded(state: WardenState) -> Iterator[Payload | Correlated]:
    """The last word on a proposal whose execution has ended, be it while the warden was halted."""
    view = state.executing
    if view is not None and view.ended:
        yield from closed(view, view.ended, view.why)
        yield from ended_when_idle(state)
