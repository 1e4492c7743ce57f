"""What must always hold of typing, read off the events and off what a device typed, not by the actors' own means.

``check_laws`` holds for every prefix of a history, ``check_rest`` when everything has come to an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.hid import (
    HidArmed,
    HidCommitRequested,
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
    HidSilent,
    HidTold,
    HidTripped,
)
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.pla import MODES, PlaMode, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaArmRequested,
    PlaDecisionRefused,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaModeRequested,
    PlaProposalClosed,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event, time_after
from tests.support.pla_pretended import Typed

ANSWERS: Final[dict[type[msgspec.Struct], tuple[type[msgspec.Struct], ...]]] = {
    PlaModeRequested: (PlaModeAnswered,),
    PlaEndRequested: (PlaModeAnswered,),
    PlaDecisionRequested: (PlaApproved, PlaRejected, PlaDecisionRefused),
    PlaArmRequested: (PlaArmAnswered,),
    PlaDisarmRequested: (PlaArmAnswered,),
}
"""What a request is answered by, once."""


class Laws:
    """The laws, gone through event by event. ``failing``: actors may be halted, so that what they ought to decide may
    never come; what must not happen still must not."""

    def __init__(self, *, failing: bool = False) -> None:
        self.failing = failing
        self.mode: PlaMode = "OBSERVE"
        self.session = ""
        self.link: HidLinked | None = None
        self.kill = ""
        self.armed = False
        self.proposed: dict[str, Event] = {}
        self.open: set[str] = set()
        self.closed: set[str] = set()
        self.approved: dict[str, tuple[Event, PlaApproved]] = {}
        self.requested: dict[str, PlaExecutionRequested] = {}
        self.prepared: dict[str, str] = {}
        self.committed: dict[str, Event] = {}
        self.ended: dict[str, str] = {}
        self.told: dict[str, list[Any]] = {}
        self.events: list[Event] = []
        self.fallen = False
        self.paused = False
        self.paused_at = 0

    def take(self, event: Event) -> None:
        """The next event."""
        if event.kind == "fact":
            if not self.failing:
                assert not self.fallen or self.mode == "OBSERVE", "what is not in order lowers the mode at once"
            self.fallen = False
        self.events.append(event)
        match event.actor:
            case "warden":
                self._warden(event, event.data)
            case "hid":
                self._hid(event, event.data)
            case "gate" if isinstance(event.data, EffectsPaused | EffectsResumed):
                self._switched(event)
            case "brain" if isinstance(event.data, PlaProposed):
                self.proposed[event.data.proposal_id] = event
                if not self.open and self.mode != "OBSERVE" and event.data.session_id == self.session:
                    self.open.add(event.data.proposal_id)
        if event.kind == "fact":
            self._fact(event.data)
        elif isinstance(event.data, KernelModeDecided) and event.data.mode == "BLOCKED":
            self.fallen = True

    def _switched(self, event: Event) -> None:
        self.paused = isinstance(event.data, EffectsPaused)
        if self.paused:
            self.paused_at, self.armed, self.fallen = event.position, False, True

    # --- the device ---------------------------------------------------------------------------------------------------

    def _fact(self, data: Any) -> None:
        match data:
            case DaemonStarted():
                self.link, self.armed, self.fallen = None, False, True
            case HidLinked():
                self.link, self.kill, self.armed = data, data.kill_switch_state, False
                self.fallen = not data.compatible or self.kill != "ARMED"
            case HidLost():
                self.link, self.armed, self.fallen = None, False, True
            case HidReported() | HidPinged() if self.link is not None and data.boot_id == self.link.boot_id:
                self.kill = data.kill_switch_state
                self.fallen = self.fallen or (isinstance(data, HidReported) and self.kill != "ARMED")
            case HidArmed() if self.link is not None and data.boot_id == self.link.boot_id:
                self.armed = True
            case HidPrepared():
                asked = self.events[data.request - 1].data
                if isinstance(asked, HidPrepareRequested) and asked.boot_id == data.boot_id:
                    self.prepared[data.execution_id] = data.digest
            case HidEnded() | HidTold() | HidRefused() | HidSilent():
                name = getattr(self.events[data.request - 1].data, "execution_id", "")
                self.told.setdefault(name, []).append(data)

    # --- the warden ---------------------------------------------------------------------------------------------------

    def _warden(self, event: Event, data: Any) -> None:
        asked = self.events[event.causation - 1].data if event.causation else None
        arming = isinstance(asked, PlaArmRequested) and asked.keeps_mode
        assert not arming, "a request to arm changes neither the mode nor a proposal, and is no violation"
        match data:
            case PlaSessionBegan():
                assert not self.session, "one session at a time"
                self.session = data.session_id
            case PlaSessionEnded():
                assert data.session_id == self.session
                assert self.mode == "OBSERVE"
                if not self.failing:
                    assert not self.open
                    assert self.requested.keys() == self.ended.keys(), "not before its executions have ended"
                self.session = ""
            case PlaModeChanged():
                self._mode(event, data)
            case PlaApproved():
                self._approval(event, data)
            case PlaRejected():
                assert data.proposal_id in self.open
                assert data.reason.strip()
            case PlaProposalClosed():
                self.open.discard(data.proposal_id)
                self.closed.add(data.proposal_id)
            case PlaExecutionRequested():
                self._execution(event, data)

    def _mode(self, event: Event, changed: PlaModeChanged) -> None:
        assert changed.previous == self.mode
        assert changed.session_id == self.session != ""
        step = MODES.index(changed.mode) - MODES.index(self.mode)
        asked = self.events[event.causation - 1]
        if step > 0:
            assert step == 1, "up by one step"
            assert not self.paused, "not in a pause"
            assert isinstance(asked.data, PlaModeRequested), "up by an operator only"
            assert asked.kind == "fact"
            assert (asked.data.mode, asked.data.operator_id) == (changed.mode, changed.who)
        if changed.mode == "EXECUTE":
            assert self.link is not None
            assert (self.link.compatible, self.kill) == (True, "ARMED")
        self.mode = changed.mode
        if self.mode != "EXECUTE":
            self.armed = False

    def _approval(self, event: Event, approved: PlaApproved) -> None:
        name, asked = approved.proposal_id, self.events[event.causation - 1]
        decided: Any = asked.data
        proposed = self.proposed[name]
        assert (asked.kind, type(decided), decided.decision) == ("fact", PlaDecisionRequested, "APPROVED")
        assert (decided.proposal_id, decided.operator_id) == (name, approved.operator_id)
        assert decided.digest == approved.digest == proposed.data.digest, "for the bytes that were shown"
        assert name in self.open or self.failing, "only what is open"
        assert name not in self.closed
        assert name not in self.approved, "once"
        assert event.time < proposed.data.expires_at
        assert approved.executes == (self.mode == "EXECUTE")
        assert approved.expires_at == time_after(asked.time, 60.0), "a minute, also where a crash came between"
        if proposed.data.credential_warning:
            assert decided.acknowledged
            assert proposed.data.policy == "acknowledge"
            assert event.time >= time_after(proposed.time, 5.0)
        if proposed.data.two_persons:
            assert approved.operator_id != proposed.data.requested_by
        self.approved[name] = (event, approved)
        self.open.discard(name)

    def _execution(self, event: Event, asked: PlaExecutionRequested) -> None:
        at, approved = self.approved[asked.proposal_id]
        assert approved.executes
        assert at.causation == event.causation, "in the approval's own reaction"
        assert asked.execution_id not in self.requested
        assert asked.digest == approved.digest
        self.requested[asked.execution_id] = asked

    # --- the link -----------------------------------------------------------------------------------------------------

    def _hid(self, event: Event, data: Any) -> None:
        match data:
            case HidDisarmRequested() | HidTripped():
                self.armed = False
                self.fallen = self.fallen or isinstance(data, HidTripped)
            case HidPrepareRequested():
                asked = self.requested[data.execution_id]
                assert (data.digest, data.action) == (asked.digest, asked.action)
                assert data.masked or digest(data.action) == data.digest
            case HidCommitRequested():
                self._commit(event, data)
            case PlaExecuted():
                self._executed(data)
            case HidOutcomeUnknown(execution_id=name):
                assert name in self.committed, "only what may have been typed is unknown"
                self._over(name, "unknown")

    def _commit(self, event: Event, order: HidCommitRequested) -> None:
        name = order.execution_id
        assert name not in self.committed, "ordered once"
        asked = self.requested[name]
        at, approved = self.approved[asked.proposal_id]
        assert at.position > self.paused_at, "nothing that was approved before a pause"
        assert order.digest == approved.digest == self.prepared[name], "what was approved, and what the device holds"
        assert event.time < approved.expires_at
        assert self.mode == "EXECUTE"
        assert self.link is not None
        assert (self.link.compatible, self.link.boot_id, self.kill) == (True, order.boot_id, "ARMED")
        assert self.armed
        assert name not in self.ended
        grant = self.events[order.permit - 1].data
        assert isinstance(grant, OaPermitGranted)
        assert (grant.subject, grant.uses, grant.holder) == (f"hid:{name}:{order.digest}", 1, "hid")
        self.committed[name] = event

    def _executed(self, executed: PlaExecuted) -> None:
        name, told = executed.execution_id, self.told.get(executed.execution_id, [])
        said = [getattr(one, "state", "") for one in told]
        if executed.outcome == "done":
            assert name in self.committed
            assert "DONE" in said
        elif executed.outcome == "aborted":
            assert "ABORTED" in said
        elif name in self.committed:
            position = self.committed[name].position
            refused = [
                one for one in self.events if isinstance(one.data, EffectRefused) and one.data.request == position
            ]
            nothing = [one for one in told if isinstance(one, HidRefused) or getattr(one, "sent", None) is False]
            assert refused or nothing or {"NONE", "PREPARED"} & set(said), "somebody knows that nothing was typed"
        self._over(name, executed.outcome)

    def _over(self, name: str, outcome: str) -> None:
        assert name in self.requested
        assert name not in self.ended, "one end"
        self.ended[name] = outcome


def check_laws(history: Sequence[Event], typed: Sequence[Typed], *, failing: bool = False) -> Laws:
    """The history keeps every law, and what was typed is what it ordered."""
    laws = Laws(failing=failing)
    for event in history:
        laws.take(event)
    for one in typed:
        order = laws.committed[one.execution_id]
        assert (order.data.digest, order.data.boot_id) == (one.digest, one.boot), "just these bytes, at that device"
    assert len({one.execution_id for one in typed}) == len(typed), "never twice"
    _forged_in_vain(history)
    return laws


def _forged_in_vain(history: Sequence[Event]) -> None:
    """Orders by anybody else are refused."""
    forged = {
        event.position for event in history if isinstance(event.data, HidCommitRequested) and event.actor != "hid"
    }
    refused = {event.data.request for event in history if isinstance(event.data, EffectRefused)}
    assert forged <= refused
    assert all(event.actor == "gate" for event in history if isinstance(event.data, EffectRefused))


def check_rest(history: Sequence[Event], typed: Sequence[Typed]) -> None:
    """Everything has come to its end, and that end is told."""
    laws = check_laws(history, typed)
    assert (laws.session, laws.mode, laws.armed) == ("", "OBSERVE", False)
    assert laws.requested.keys() == laws.ended.keys(), "each execution has an end"
    closed = Counter(event.data.proposal_id for event in history if isinstance(event.data, PlaProposalClosed)
                     if event.actor == "warden")  # fmt: skip
    assert closed.keys() == laws.proposed.keys()
    assert set(closed.values()) <= {1}, "one last word on each proposal"
    typed_once = {one.execution_id for one in typed}
    for name, outcome in laws.ended.items():
        if outcome in ("done", "aborted"):
            assert name in typed_once, "what is told to be typed was"
        if outcome == "not_executed":
            assert name not in typed_once, "what is told not to be typed was not"
    answered = Counter(
        event.data.request
        for event in history
        if event.kind == "decision" and type(event.data) in {kind for kinds in ANSWERS.values() for kind in kinds}
        if event.actor in ("warden", "hid")
    )
    for event in history:
        if type(event.data) in ANSWERS and event.kind == "fact":
            assert answered[event.position] == 1, f"one answer to {event.type} at {event.position}"
    assert not [event for event in history if isinstance(event.data, PlaViolation) and not event.data.handling]
