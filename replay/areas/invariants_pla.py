"""Laws of the PLA, computed from the events themselves (docs/design.md §9, §16).

``check_pla`` holds for any prefix of a history, ``check_pla_ended`` for one that came to rest, ``check_pla_idle`` for
states that did. ``approved`` says whether something may be typed now; the witness at the device asks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectRefused, RequestRefused
from pmagent.contracts.hid import (
    HidArmed,
    HidCommitRequested,
    HidDisarmed,
    HidDisarmRequested,
    HidEnded,
    HidLinked,
    HidLost,
    HidOutcomeUnknown,
    HidPinged,
    HidPrepared,
    HidPrepareRequested,
    HidRefused,
    HidReported,
    HidTold,
)
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved
from pmagent.contracts.pla import APPROVAL_SECONDS, CREDENTIAL_SECONDS, MODES
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRequested,
    PlaDisarmRequested,
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
from pmagent.events.event import Event, LogRecovered, time_after
from pmagent.replay.areas.pla.records import Execution, Proposal, require_mode_kept
from pmagent.replay.simulation.world import require, there

OWN: Final[dict[type, str]] = {
    PlaSessionBegan: "warden", PlaSessionEnded: "warden", PlaModeChanged: "warden", PlaApproved: "warden",
    PlaRejected: "warden", PlaExecutionRequested: "warden", PlaProposalClosed: "warden", PlaProposed: "brain",
    PlaExecuted: "hid", HidOutcomeUnknown: "hid", HidPrepareRequested: "hid", HidCommitRequested: "hid",
    HidDisarmRequested: "hid", EffectsPaused: "gate", EffectsResumed: "gate",
}  # fmt: skip
"""Type -> the actor that decides it. The same from another actor, or as a fact, counts for nothing."""

ANSWERS: Final[dict[type, str]] = {
    PlaModeRequested: "warden", PlaEndRequested: "warden", PlaDecisionRequested: "warden",
    PlaProposalRequested: "brain", PlaObserveRequested: "brain", PlaArmRequested: "hid", PlaDisarmRequested: "hid",
}  # fmt: skip
"""Request type -> the actor that answers it; another halted PLA actor that hears the request has it refused too."""


def check_pla(history: Sequence[Event]) -> _Check:
    """Modes, proposals, approvals and executions are as docs/design.md §16 has them. Raises Violation."""
    refused = frozenset(event.data.request for event in history if isinstance(event.data, EffectRefused))
    check = _Check(refused)
    for event in history:
        check.take(event)
    return check


def check_pla_ended(history: Sequence[Event]) -> None:
    """After everything came to rest: each proposal is closed, each execution has its one end. Raises Violation."""
    check = check_pla(history)
    for name, proposal in check.proposals.items():
        require(proposal.outcome != "", f"proposal {name} is not closed")
    for name, execution in check.executions.items():
        require(execution.end is not None, f"execution {name} has no end")
    require(check.session_id == "", "a session has no end")


def check_pla_idle(states: Mapping[str, Any]) -> None:
    """After everything came to rest nobody waits for anything, and nothing is armed. Raises Violation."""
    warden, hid = states["warden"], states["hid"]
    require(warden.mode == "OBSERVE" and not warden.armed, f"the warden rests in {warden.mode}")
    require(not warden.session_id and not warden.open_proposals, "the warden waits for something")
    left = {name: getattr(hid, name) for name in ("arming", "execution", "disarming", "wishes", "approvals")}
    require(not any(left.values()) and not hid.armed, f"the HID link waits for something: {left}")


class _Check:
    def __init__(self, refused: frozenset[int]) -> None:
        self._refused = refused
        self.session_id = ""
        self.mode = "OBSERVE"
        self.proposals: dict[str, Proposal] = {}
        self.executions: dict[str, Execution] = {}
        self._asked: dict[int, Event] = {}
        self._prepares: dict[int, str] = {}
        self._lasting = False
        self._kernel = ""
        self._device: HidLinked | None = None
        self._ready = False
        self._armed = False
        self._low = ""
        self._broken: int | None = None
        self._paused = False
        self._paused_at = 0
        self._halted: set[str] = set()
        self._disarms: set[int] = set()

    # --- one event after the other --------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        if event.kind == "fact":
            if not isinstance(event.data, LogRecovered):  # it stands before the rest of a reaction that was cut short
                self._settled()
            self._fact(event)
            if isinstance(event.data, ActorResumed):
                self._resumed(event.data.name)
        elif isinstance(event.data, ActorHalted | RequestRefused) and event.actor == "engine":
            self._halts(event)
        elif OWN.get(type(event.data), event.actor) == event.actor:
            self._decision(event)
        if isinstance(event.data, HidDisarmRequested):
            self._disarms.add(event.position)

    def _resumed(self, name: str) -> None:
        if name == "warden" and name in self._halted:
            self._low = "the warden was halted"
        self._halted.discard(name)

    def _halts(self, event: Event) -> None:
        """Nothing is typed while one of these is halted: the warden lowers the mode, or does once it decides again."""
        match event.data:
            case ActorHalted(name=name):
                self._halted.add(name)
                if name in ("brain", "hid"):
                    self._low = f"{name} was halted at {event.position}"
            case RequestRefused(request=request, name="warden") if request == self._broken:
                self._broken = None

    def _settled(self) -> None:
        """All consequences of the last fact have been decided."""
        if "warden" not in self._halted:
            require(not self._low or self.mode == "OBSERVE", f"{self._low}, and the mode is {self.mode}")
        require(self._broken is None, f"nothing is told of the broken contract at {self._broken}")
        require(len(list(self._open())) <= 1, "two proposals are open")
        self._low = ""

    def _fact(self, event: Event) -> None:
        match event.data:
            case DaemonStarted(surface=surface):
                self._lasting = surface == "daemon"
                self._kernel = ""
                self._lose(f"a process started at {event.position}" if self._lasting else "")
            case DaemonStopped():
                self._lose(f"the process stopped at {event.position}" if self._lasting else "")
            case KernelObserved():
                self._kernel = self._kernel or "observed"
            case HidLinked() as linked:
                self._device, self._armed = linked, False
                self._ready = linked.compatible and linked.kill_switch_state == "ARMED"
                if not self._ready:
                    self._low = f"a device that cannot type was linked at {event.position}"
            case HidLost():
                self._lose(f"the device was lost at {event.position}")
            case HidReported(boot_id=boot, kill_switch_state=kill) | HidPinged(boot_id=boot, kill_switch_state=kill):
                if self._device is not None and boot == self._device.boot_id and kill != "ARMED":
                    self._ready = False
                    self._low = f"the kill switch was hit, as told at {event.position}"
            case HidArmed() | HidDisarmed() | HidRefused() | HidPrepared() | HidEnded() | HidTold():
                self._outcome(event)
            case PlaModeRequested() | PlaProposalRequested() | PlaDecisionRequested() | PlaArmRequested():
                self._asked[event.position] = event
            case PlaContractBroken():
                self._broken = event.position

    def _lose(self, why: str) -> None:
        self._device, self._armed, self._ready = None, False, False
        self._low = why

    def _outcome(self, event: Event) -> None:
        """The device's answer; a fact that answers no request counts for nothing."""
        match event.data:
            case HidArmed(request=request) if request == event.causation:
                self._armed = True
            case HidDisarmed(request=request) if request == event.causation:
                self._armed = False
            case HidRefused(request=request, code=code) if request == event.causation and request in self._disarms:
                require(code != "APPROVAL", f"the disarm at {request} was refused at {event.position}")
            case HidPrepared(request=request) if request == event.causation and request in self._prepares:
                self.executions[self._prepares[request]].prepared = True
            case (
                HidEnded(request=request, execution_id=name, state=state)
                | HidTold(request=request, execution_id=name, state=state)
            ) if request == event.causation and name in self.executions:
                execution = self.executions[name]
                if execution.ordered and execution.end is None:
                    execution.device_state = state

    def _decision(self, event: Event) -> None:
        data = event.data
        require_mode_kept(self._asked.get(event.causation), event)
        match data:
            case KernelModeDecided(mode=mode):
                self._kernel = mode
                if mode == "BLOCKED":
                    self._low = f"the kernel was BLOCKED at {event.position}"
            case EffectsPaused() | EffectsResumed():
                self._switched(event)
            case PlaSessionBegan(session_id=session_id):
                require(self.session_id == "", f"session {session_id} begins while another stands")
                self.session_id = session_id
            case PlaSessionEnded(session_id=session_id):
                self._session_ended(session_id)
            case PlaModeChanged() as changed:
                self._mode_changed(event, changed)
            case PlaProposed() as proposed:
                self._proposed(event, proposed)
            case PlaApproved() as approval:
                self._approved(event, approval)
            case PlaRejected() as rejected:
                self._rejected(event, rejected)
            case PlaProposalClosed(proposal_id=name, outcome=outcome):
                self._closed(name, outcome)
            case PlaViolation():
                self._broken = None
            case _:
                self._executing(event)

    # --- sessions and modes ---------------------------------------------------------------------------------------

    def _session_ended(self, session_id: str) -> None:
        require(session_id == self.session_id != "", f"session {session_id} ends, which does not stand")
        require(self.mode == "OBSERVE", f"the session ends in {self.mode}")
        require(not list(self._open()), "the session ends while a proposal is open")
        self.session_id = ""

    def _switched(self, event: Event) -> None:
        """Somebody used the stop switch."""
        self._paused = isinstance(event.data, EffectsPaused)
        if self._paused:
            self._paused_at, self._armed = event.position, False
            self._low = f"effects were paused at {event.position}"

    def _mode_changed(self, event: Event, changed: PlaModeChanged) -> None:
        where = f"mode {changed.previous} to {changed.mode} at {event.position}"
        require(changed.previous == self.mode != changed.mode, f"{where}: the mode is {self.mode}")
        require(changed.session_id == self.session_id != "", f"{where}: of another session")
        require(bool(changed.who and changed.code and changed.why), f"{where}: it is not said who, or why")
        if MODES.index(changed.mode) > MODES.index(changed.previous):
            request = self._asked.get(event.causation)
            asked = request.data if request is not None else None
            require(
                isinstance(asked, PlaModeRequested) and (asked.mode, asked.operator_id) == (changed.mode, changed.who),
                f"{where}: no operator asked for it",
            )
            require(MODES.index(changed.mode) == MODES.index(changed.previous) + 1, f"{where}: it skips a mode")
            require(self._kernel not in ("", "BLOCKED"), f"{where}: the kernel is {self._kernel or 'not known'}")
            require(not self._paused, f"{where}: effects are paused")
            require(not self._halted, f"{where}: halted are {self._halted}")
            if changed.mode == "EXECUTE":
                require(self._ready and self._lasting, f"{where}: there is no device that is ready")
        self.mode = changed.mode
        self._armed = self._armed and self.mode == "EXECUTE"

    # --- proposals and decisions ----------------------------------------------------------------------------------

    def _open(self) -> Iterator[Proposal]:
        return (one for one in self.proposals.values() if not one.outcome and one.approval is None)

    def _proposed(self, event: Event, proposed: PlaProposed) -> None:
        where = f"proposal {proposed.proposal_id} at {event.position}"
        require(proposed.proposal_id not in self.proposals, f"{where}: it is known")
        self.proposals[proposed.proposal_id] = Proposal(event)
        require(len(proposed.digest) == 64, f"{where}: it has no digest")
        request = self._asked.get(proposed.request)
        require(request is not None and isinstance(request.data, PlaProposalRequested), f"{where}: nobody asked")
        if self.mode == "OBSERVE" or self.session_id != proposed.session_id:
            return  # it is withdrawn at once, as _closed and check_pla_ended hold
        if proposed.credential_warning:
            require(proposed.policy == "acknowledge", f"{where}: with credentials, which the policy refuses")
        if proposed.masked:
            require(proposed.credential_warning, f"{where}: it is masked, and does not say that it holds credentials")

    def _decided(self, event: Event, decision: PlaApproved | PlaRejected, word: str) -> Proposal:
        """The proposal that an operator decided on, in just this way."""
        where = f"{word} of {decision.proposal_id} at {event.position}"
        request = self._asked.get(decision.request)
        asked = request.data if request is not None else None
        require(isinstance(asked, PlaDecisionRequested), f"{where}: no operator decided")
        assert isinstance(asked, PlaDecisionRequested), "just required"
        same = (asked.proposal_id, asked.digest, asked.operator_id, asked.channel) == (
            decision.proposal_id, decision.digest, decision.operator_id, decision.channel,
        )  # fmt: skip
        require(same and asked.decision == word, f"{where}: the operator decided otherwise")
        proposal = there(self.proposals.get(decision.proposal_id), f"{where}: there is no such proposal")
        require(not proposal.outcome and proposal.approval is None and not proposal.rejected, f"{where}: it is decided")
        require(proposal.proposed.digest == decision.digest, f"{where}: the proposal has another digest")
        decided_at = self._asked[decision.request].time  # after a crash the decision is recorded later
        require(decided_at < proposal.proposed.expires_at, f"{where}: the proposal has expired")
        require(proposal.proposed.session_id == self.session_id, f"{where}: its session is over")
        return proposal

    def _approved(self, event: Event, approval: PlaApproved) -> None:
        proposal = self._decided(event, approval, "APPROVED")
        where = f"approval of {approval.proposal_id} at {event.position}"
        proposed = proposal.proposed
        decided_at = self._asked[approval.request].time
        expires_at = time_after(decided_at, APPROVAL_SECONDS)
        require(approval.expires_at == expires_at, f"{where}: it expires at another time")
        require(approval.executes == (self.mode == "EXECUTE"), f"{where}: executes is wrong in {self.mode}")
        require(self.mode != "OBSERVE", f"{where}: in OBSERVE")
        two = proposed.two_persons or approval.channel == "console"
        require(not two or approval.operator_id != proposed.requested_by, f"{where}: by who asked for it")
        unproven = proposed.two_persons and self._asked[approval.request].data.proof == "none"
        require(not unproven, f"{where}: by somebody who did not prove who they are")
        if proposed.credential_warning:
            require(approval.credential_acknowledged, f"{where}: nobody acknowledged the credentials")
            earliest = time_after(proposal.event.time, CREDENTIAL_SECONDS)
            require(decided_at >= earliest, f"{where}: before {earliest}")
        if approval.executes:
            require(self._ready and self._armed, f"{where}: nothing can be typed now")
        proposal.approval = event

    def _rejected(self, event: Event, rejected: PlaRejected) -> None:
        self._decided(event, rejected, "REJECTED").rejected = True
        require(rejected.reason.strip() != "", f"rejection at {event.position}: without a reason")

    def _closed(self, name: str, outcome: str) -> None:
        proposal = self.proposals.get(name)
        require(proposal is not None and not proposal.outcome, f"proposal {name} is closed and was not open")
        assert proposal is not None, "just required"
        proposal.outcome = outcome
        execution = next((one for one in self.executions.values() if one.request.proposal_id == name), None)
        ended = _outcome_of(execution.end) if execution is not None and execution.end is not None else ""
        if execution is not None and execution.end is None and "hid" in self._halted:
            require(outcome == "unknown", f"proposal {name} is closed as {outcome}, and nobody can tell")
        elif execution is not None:
            require(outcome == ended, f"proposal {name} is closed as {outcome}, and its execution was {ended}")
        elif proposal.approval is not None:
            require(outcome == "recorded", f"proposal {name}: approved in SUGGEST, and closed as {outcome}")
        else:
            fits = ("rejected",) if proposal.rejected else ("expired", "withdrawn")
            require(outcome in fits, f"proposal {name} is closed as {outcome}")

    # --- executions -----------------------------------------------------------------------------------------------

    def _executing(self, event: Event) -> None:
        match event.data:
            case HidDisarmRequested():
                self._armed = False
            case PlaExecutionRequested() as asked:
                self._execution(event, asked)
            case HidPrepareRequested(execution_id=name, digest=digest):
                one = self.executions.get(name)
                require(one is not None and one.request.digest == digest, f"{name} is prepared, not approved")
                self._prepares[event.position] = name
            case HidCommitRequested() as order if event.position not in self._refused:
                self._ordered(event, order)
            case PlaExecuted(execution_id=name, outcome=outcome):
                self._ended(event, name, outcome)
            case HidOutcomeUnknown(execution_id=name):
                self._ended(event, name, "unknown")

    def _execution(self, event: Event, asked: PlaExecutionRequested) -> None:
        where = f"execution {asked.execution_id} at {event.position}"
        require(asked.execution_id not in self.executions, f"{where}: it is known")
        proposal = self.proposals.get(asked.proposal_id)
        approval = proposal.approval if proposal is not None else None
        require(approval is not None and approval.data.executes, f"{where}: it was not approved")
        assert proposal is not None, "just required"
        assert approval is not None, "just required"
        same = (asked.digest, asked.approval) == (approval.data.digest, approval.data.request)
        require(same, f"{where}: other bytes")
        require(asked.action == proposal.proposed.action, f"{where}: another action")
        again = any(one.approval.position == approval.position for one in self.executions.values())
        require(not again, f"{where}: its approval was used before")
        self.executions[asked.execution_id] = Execution(event, approval)

    def _ordered(self, event: Event, order: HidCommitRequested) -> None:
        where = f"order of {order.execution_id} at {event.position}"
        execution = there(self.executions.get(order.execution_id), f"{where}: it was not approved")
        require(not execution.ordered, f"{where}: it was ordered before")
        require(execution.end is None, f"{where}: it is over")
        require(order.digest == execution.request.digest, f"{where}: other bytes")
        require(event.time < execution.approval.data.expires_at, f"{where}: the approval has expired")
        require(self.mode == "EXECUTE", f"{where}: the mode is {self.mode}")
        require(execution.approval.position > self._paused_at, f"{where}: approved before effects were paused")
        require(self._ready and self._armed, f"{where}: the device is not ready and armed")
        require(not self._halted & {"brain", "warden", "hid"}, f"{where}: halted are {self._halted}")
        require(execution.prepared, f"{where}: it was not prepared")
        boot_id = self._device.boot_id if self._device is not None else ""
        require(order.boot_id == boot_id, f"{where}: another boot")
        execution.ordered.append(event.position)

    def _ended(self, event: Event, name: str, outcome: str) -> None:
        where = f"end of {name} at {event.position}"
        execution = there(self.executions.get(name), f"{where}: nobody asked for it")
        require(execution.end is None, f"{where}: it has ended before")
        execution.end = event
        match outcome:
            case "done" | "aborted":
                expected = {"done": "DONE", "aborted": "ABORTED"}[outcome]
                reported = execution.device_state or "nothing"
                require(reported == expected, f"{where}: {outcome}, and the device said {reported}")
            case "unknown":
                require(bool(execution.ordered), f"{where}: unknown, and it was never ordered")


def _outcome_of(end: Event) -> str:
    outcome = "unknown" if isinstance(end.data, HidOutcomeUnknown) else str(end.data.outcome)
    return "executed" if outcome == "done" else outcome


def approved(
    history: Sequence[Event], performed: Mapping[int, int], execution: str, digest: str
) -> PlaExecutionRequested:
    """The log holds all that it takes to type this, as it begins to be typed: an operator's decision on these bytes, in
    EXECUTE, and the one order, whose performer has started. Returns the approved request. Raises Violation."""
    check = check_pla(history)
    found = check.executions.get(execution)
    require(found is not None and found.request.digest == digest, f"{execution} is typed, and was not approved")
    assert found is not None, "just required"
    require(len(found.ordered) == 1 and performed[found.ordered[0]] == 1, f"{execution} is typed, and was not ordered")
    return found.request
