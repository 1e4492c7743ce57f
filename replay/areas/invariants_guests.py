"""The laws of guests, computed from the events themselves. They hold for any prefix of a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pmagent.actors.guests.state import GuestsState
from pmagent.contracts.guests import (
    GUESTS,
    GuestAnswerRefused,
    GuestAnswerRequested,
    GuestApprovalAsked,
    GuestApprovalExpired,
    GuestApprovalGiven,
    GuestApprovalRejected,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestPolicyEditAccepted,
    GuestPolicyEditRefused,
    GuestPolicyEditRequested,
    GuestSessionClosed,
)
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require


class _Asked(msgspec.Struct):
    """An approval, as the history has it."""

    call: GuestCallAsked
    needed: int
    operators: list[str] = []
    expires: str = ""
    over: bool = False


class Law:
    """Holds each event to what came before it."""

    def __init__(self) -> None:
        self._asked: dict[int, GuestCallAsked] = {}
        self._answers: dict[int, GuestAnswerRequested] = {}
        self._edits: dict[int, GuestPolicyEditRequested] = {}
        """Policies' new texts of which nothing is decided yet."""
        self._answered: set[int] = set()
        self._decided: dict[int, GuestCallDecided] = {}
        self._passed: set[int] = set()
        """Calls that were let through."""
        self._owed: dict[int, int] = {}
        """Call -> the approval by which it was allowed, until that is used."""
        self._ended: set[int] = set()
        self._approvals: dict[int, _Asked] = {}
        self._left: dict[str, int] = {}
        """Bounded rule -> so many calls more it may let through."""

    def take(self, event: Event) -> None:
        """Hold one more event to the laws. Raises Violation."""
        data = event.data
        if event.kind == "fact":
            self._said(event)
            return
        if event.actor != GUESTS:
            return
        match data:
            case GuestCallDecided():
                self._decide(event, data)
            case GuestApprovalAsked(approval=number):
                decided = self._decided.get(number)
                require(decided is not None and decided.answer == "ask", f"{event.id} asks for what needs no approval")
                require(number not in self._approvals, f"{number} is asked for twice")
                call = self._asked[number]
                require((data.digest, call.mode) == (call.digest, "enforce"), f"{event.id} is for another call")
                self._approvals[number] = _Asked(call, data.needed, expires=data.expires)
            case GuestApprovalGiven() | GuestApprovalRejected() | GuestAnswerRefused():
                self._answer(event, data)
            case GuestApprovalUsed(approval=number, call_asked=position):
                self._use(event, number, position)
            case GuestApprovalExpired(approval=number):
                require(self._approvals[number].expires <= event.time, f"{event.id} is too early")
                self._approvals[number].over = True
            case GuestCallClosed():
                self._close(event, data)
            case GuestPolicyEditAccepted() | GuestPolicyEditRefused():
                self._edit(event, data)
            case GuestSessionClosed(proof=proof, unseen=unseen):
                require(proof != "gated" or unseen == 0, f"{event.id} is gated, and calls went past")

    def _said(self, event: Event) -> None:
        """Keep what is to be decided on."""
        data = event.data
        if isinstance(data, GuestCallAsked) and data.source != "import":
            self._asked[event.position] = data
        elif isinstance(data, GuestAnswerRequested):
            self._answers[event.position] = data
        elif isinstance(data, GuestPolicyEditRequested):
            self._edits[event.position] = data

    def _decide(self, event: Event, data: GuestCallDecided) -> None:
        """No allow without a rule, or an unused approval of exactly that call."""
        position = data.request
        require(position in self._asked and position not in self._decided, f"{event.id} decides on no call, or again")
        require(event.causation == position, f"{event.id} is decided on something else")
        self._decided[position] = data
        observed = self._asked[position].mode == "observe"
        if data.answer == "allow":
            by_rule = data.verdict.answer == "allow" and bool(data.verdict.rules) and not data.approval
            require(by_rule != bool(data.approval), f"{event.id} allows without a rule or an approval")
            if data.approval:
                self._fits(event, data.approval, position)
                self._owed[position] = data.approval
            for rule in () if observed or data.approval else set(data.verdict.rules) & self._left.keys():
                self._left[rule] -= 1
                require(self._left[rule] >= 0, f"{event.id} is allowed by a rule that has let its number through")
        if observed or (data.answer == "allow" and not data.approval):
            self._passed.add(position)
        elif data.answer == "deny":
            self._ended.add(position)

    def _fits(self, event: Event, number: int, position: int) -> None:
        """The approval is for exactly this call, in its session and agent, given by all, not used, not expired."""
        approval, call = self._approvals.get(number), self._asked[position]
        require(approval is not None and not approval.over, f"{event.id} uses no approval, or one that is over")
        assert approval is not None
        require(len(set(approval.operators)) >= approval.needed, f"{event.id} uses one that not all have given")
        require(approval.expires > event.time, f"{event.id} uses one that has expired")
        own, other = approval.call, call
        same = (own.digest, own.session, own.facts.agent) == (other.digest, other.session, other.facts.agent)
        require(same, f"{event.id} lets another call through than was approved")

    def _use(self, event: Event, number: int, position: int) -> None:
        self._fits(event, number, position)
        owed = self._owed.pop(position, number)
        require(owed == number, f"{event.id} uses another approval than the call was allowed by")
        require(position not in self._passed and position not in self._ended, f"{position} is let through twice")
        self._approvals[number].over = True
        self._passed.add(position)

    def _answer(
        self, event: Event, data: GuestApprovalGiven | GuestApprovalRejected | GuestAnswerRefused
    ) -> None:  # fmt: skip
        wish = self._answers.get(data.request)
        require(wish is not None and data.request not in self._answered, f"{event.id} answers no operator, or again")
        assert wish is not None
        self._answered.add(data.request)
        if isinstance(data, GuestAnswerRefused):
            return
        approval = self._approvals[data.approval]
        require(not approval.over and approval.expires > event.time, f"{event.id} answers what is over")
        require(wish.digest == approval.call.digest and not wish.asking, f"{event.id}: another call, or the asker")
        require((wish.operator_id, wish.approval) == (data.operator_id, data.approval), f"{event.id}: another's name")
        if isinstance(data, GuestApprovalRejected):
            approval.over = True
            return
        require(wish.decision == "approve" and wish.operator_id not in approval.operators, f"{event.id} counts twice")
        if data.rule is not None and wish.rule_uses:
            self._left[data.rule.id] = wish.rule_uses
        approval.operators.append(data.operator_id)
        approval.expires = data.expires

    def _edit(self, event: Event, data: GuestPolicyEditAccepted | GuestPolicyEditRefused) -> None:
        """A policy's new text is accepted from no agent, and only in place of the file that was shown."""
        wish = self._edits.pop(data.request, None)
        require(wish is not None, f"{event.id} answers no operator, or again")
        assert wish is not None
        if isinstance(data, GuestPolicyEditAccepted):
            require(not wish.asking and wish.before == wish.found, f"{event.id}: the asker, or another file")
            said = (data.layer, data.sha256, data.before, data.operator_id)
            require(said == (wish.layer, wish.sha256, wish.before, wish.operator_id), f"{event.id}: another text")

    def _close(self, event: Event, data: GuestCallClosed) -> None:
        """Each call ends once, and as something that it can have come to."""
        position = data.call_asked
        require(position in self._decided and position not in self._ended, f"{position} ends twice, or undecided")
        require((position in self._passed) == (data.end in ("ended", "unknown")), f"{event.id}: {data.end} cannot be")
        self._ended.add(position)

    def passed(self, position: int) -> bool:
        """Whether the call was let through."""
        return position in self._passed


def check_guests(history: Sequence[Event]) -> None:
    """Only what a rule or an unused approval allows passes, and each call ends once. Raises Violation."""
    law = Law()
    for event in history:
        law.take(event)


def check_guests_idle(states: Mapping[str, object]) -> None:
    """Nobody waits for an answer when nothing goes on any more. Raises Violation."""
    state = states[GUESTS]
    assert isinstance(state, GuestsState)
    waiting = [call for session in state.sessions.values() for call in session.calls.values() if call.waits]
    require(not waiting and not state.approvals, "calls or approvals wait for ever")
