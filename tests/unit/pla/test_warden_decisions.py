"""Decisions of operators: for just these bytes, once, in time."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.hid import HidCommitRequested, HidDisarmRequested
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRefused,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaRejected,
    PlaViolation,
)
from tests.support.cases import each
from tests.support.pla import ALICE, BOB, Desk


def code(desk: Desk) -> str:
    """Why the last decision counted for nothing."""
    refused = desk.last(PlaDecisionRefused)
    assert refused.reasons
    assert refused.mend
    return refused.code


def test_an_approval_in_execute_is_carried_out_and_names_who_and_over_which_channel() -> None:
    desk = Desk().ready()
    proposed = desk.propose()
    desk.decide(proposed, operator_id=BOB, channel="console")
    approved = desk.last(PlaApproved)
    assert (approved.operator_id, approved.channel, approved.digest) == (BOB, "console", proposed.digest)
    assert approved.executes
    assert desk.last(PlaExecuted).outcome == "done"
    assert desk.last(PlaProposalClosed).outcome == "executed"


def test_an_approval_is_used_once() -> None:
    desk = Desk().ready()
    proposed = desk.propose()
    desk.decide(proposed)
    desk.decide(proposed)
    assert code(desk) == "decided"
    assert len(desk.of(HidCommitRequested)) == 1


def test_changed_bytes_are_not_what_was_approved() -> None:
    desk = Desk().ready()
    proposed = desk.propose()
    desk.decide(proposed, digest=digest(TypeText(text="rm -rf /\n")))
    assert code(desk) == "digest"
    assert desk.last(PlaDecisionRefused).digest == proposed.digest
    desk.decide(proposed, digest="")
    assert code(desk) == "digest"
    assert desk.of(HidCommitRequested) == []
    desk.decide(proposed)
    assert desk.last(PlaExecuted).outcome == "done", "the proposal stands all the same"


def test_nobody_decides_on_what_has_expired() -> None:
    desk = Desk().ready()
    proposed = desk.propose(lifetime_s=2.0)
    desk.mute.add(type(desk.engine.effects.open[desk.warden.open_proposals[0].timer].data))
    desk.advance(3)
    desk.decide(proposed)
    assert code(desk) == "expired"
    assert desk.last(PlaProposalClosed).outcome == "expired"
    assert desk.of(HidCommitRequested) == []


def test_a_proposal_expires_by_itself_and_makes_room() -> None:
    desk = Desk().mode("SUGGEST")
    first = desk.propose(lifetime_s=2.0)
    second = desk.propose()
    assert desk.last(PlaProposalClosed).proposal_id == second.proposal_id, "one is open at a time"
    desk.advance(3)
    closed = desk.last(PlaProposalClosed)
    assert (closed.proposal_id, closed.outcome) == (first.proposal_id, "expired")
    desk.decide(first)
    assert code(desk) == "expired", "whether the decision or the timer came first"
    desk.propose(TypeText(text="a"))
    assert len(desk.warden.open_proposals) == 1


def test_an_approval_that_expires_before_the_order_types_nothing() -> None:
    desk = Desk().ready()
    obedient = desk.device
    desk.device = lambda event: None if event.type == "hid.prepare_requested" else obedient(event)
    desk.decide(desk.propose())
    desk.advance(61)
    desk.device = obedient
    desk.go()
    ended = desk.last(PlaExecuted)
    assert ended.outcome == "not_executed"
    assert "the approval expired" in ended.why
    assert desk.of(HidCommitRequested) == []


@each("reason", ["", " ", "\n\t"])
def test_a_rejection_needs_a_reason(reason: str) -> None:
    desk = Desk().mode("SUGGEST")
    proposed = desk.propose()
    desk.decide(proposed, "REJECTED", reason=reason)
    assert code(desk) == "reason"
    desk.decide(proposed, "REJECTED", reason="not now")
    assert desk.last(PlaRejected).reason == "not now"
    assert desk.last(PlaProposalClosed).outcome == "rejected"


def test_what_is_said_of_a_second_decision_is_what_became_of_the_first() -> None:
    desk = Desk().ready()
    rejected = desk.propose()
    desk.decide(rejected, "REJECTED", reason="not this")
    desk.decide(rejected)
    assert code(desk) == "decided"
    assert desk.last(PlaDecisionRefused).reasons == ["the proposal is rejected already"]
    approved = desk.propose()
    desk.decide(approved)
    desk.decide(approved, "REJECTED", reason="too late")
    assert code(desk) == "decided"
    assert desk.last(PlaDecisionRefused).reasons == ["the proposal is executed already; an approval is used once"]


def test_nobody_decides_on_what_does_not_exist() -> None:
    desk = Desk()
    desk.tell(
        PlaDecisionRequested(
            proposal_id="prop-of-nobody", decision="APPROVED", digest="", operator_id=ALICE, channel="cli"
        )
    )
    assert code(desk) == "unknown"


def test_credentials_need_an_acknowledgement_and_five_seconds() -> None:
    desk = Desk().ready()
    proposed = desk.propose(findings=["password"], policy="acknowledge")
    desk.decide(proposed)
    assert code(desk) == "credential"
    desk.decide(proposed, acknowledged=True)
    assert code(desk) == "wait"
    desk.advance(5)
    desk.decide(proposed, acknowledged=True)
    assert desk.last(PlaApproved).credential_acknowledged
    assert desk.last(PlaExecuted).outcome == "done"


def test_nothing_is_approved_that_would_wait_to_be_typed() -> None:
    desk = Desk().link().mode("SUGGEST", "EXECUTE")
    proposed = desk.propose()
    desk.decide(proposed)
    assert code(desk) == "not_armed"
    desk.arm()
    desk.tell(PlaDisarmRequested(operator_id=BOB, channel="cli"))
    desk.decide(proposed)
    assert code(desk) == "not_armed"
    desk.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    desk.decide(proposed)
    assert desk.last(PlaExecuted).outcome == "done"


@each(
    "kind, severity, handling",
    [
        ("schema_validation", "error", "the action is rejected; the operator is told"),
        ("missing_field", "error", "it is answered as a validation error"),
        ("bound_exceeded", "error", "the action is rejected; the operator is told"),
        ("mode_mismatch", "warning", "HID is disabled; the mode has to be set again"),
        ("missing_approval", "error", "the execution is rejected; an approval is required"),
        ("something else", "error", "the action is rejected; the operator is told"),
    ],
)
def test_each_row_of_the_table_of_violations_is_told_as_the_answer(kind: str, severity: str, handling: str) -> None:
    desk = Desk().mode("SUGGEST")
    asked = desk.tell(
        PlaContractBroken(
            contract="action_execute",
            kind=kind,
            pointer="/payload/text",
            text="it is too long",
            by="border",
            channel="document",
        )
    )
    (told,) = desk.of(PlaViolation)
    assert (told.correlation, told.data.severity, told.data.handling) == (asked.correlation, severity, handling)
    assert told.data.text == "it is too long at /payload/text"
    assert desk.of(PlaExecutionRequested) == []
    assert desk.warden.mode == ("OBSERVE" if kind == "mode_mismatch" else "SUGGEST"), "HID is disabled"


def test_a_document_made_for_another_mode_ends_what_is_typed() -> None:
    desk = Desk().ready()
    proposed = desk.propose()
    desk.tell(
        PlaContractBroken(
            contract="action_proposal", kind="mode_mismatch", pointer="/mode", text="it was made for SUGGEST",
            by="border", channel="document",
        )
    )  # fmt: skip
    changed = desk.last(PlaModeChanged)
    assert (changed.previous, changed.mode, changed.who) == ("EXECUTE", "OBSERVE", "border")
    assert (changed.code, changed.channel) == ("mode_mismatch", "document")
    assert len(desk.of(HidDisarmRequested)) == 1
    assert desk.warden.proposals[proposed.proposal_id].outcome == "withdrawn"


def state_of(desk: Desk) -> Any:
    """The warden's proposals."""
    return desk.warden.proposals


def test_old_proposals_leave_the_state_and_open_ones_stay() -> None:
    desk = Desk().mode("SUGGEST")
    for number in range(105):
        desk.decide(desk.propose(TypeText(text=f"{number}")), "REJECTED", reason="no")
    last = desk.propose()
    assert len(state_of(desk)) == 100
    assert last.proposal_id in state_of(desk)
