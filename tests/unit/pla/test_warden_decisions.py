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
from tests.support.pla import ALICE, BOB, PlaHarness


def code(harness: PlaHarness) -> str:
    """Why the last decision counted for nothing."""
    refused = harness.last(PlaDecisionRefused)
    assert refused.reasons
    assert refused.mend
    return refused.code


def test_an_approval_in_execute_is_carried_out_and_names_who_and_over_which_channel() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose()
    harness.decide(proposed, operator_id=BOB, channel="console")
    approved = harness.last(PlaApproved)
    assert (approved.operator_id, approved.channel, approved.digest) == (BOB, "console", proposed.digest)
    assert approved.executes
    assert harness.last(PlaExecuted).outcome == "done"
    assert harness.last(PlaProposalClosed).outcome == "executed"


def test_an_approval_is_used_once() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose()
    harness.decide(proposed)
    harness.decide(proposed)
    assert code(harness) == "decided"
    assert len(harness.of(HidCommitRequested)) == 1


def test_changed_bytes_are_not_what_was_approved() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose()
    harness.decide(proposed, digest=digest(TypeText(text="rm -rf /\n")))
    assert code(harness) == "digest"
    assert harness.last(PlaDecisionRefused).digest == proposed.digest
    harness.decide(proposed, digest="")
    assert code(harness) == "digest"
    assert harness.of(HidCommitRequested) == []
    harness.decide(proposed)
    assert harness.last(PlaExecuted).outcome == "done", "the proposal stands all the same"


def test_nobody_decides_on_what_has_expired() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose(lifetime_s=2.0)
    harness.mute.add(type(harness.engine.effects.open[harness.warden.open_proposals[0].timer].data))
    harness.advance(3)
    harness.decide(proposed)
    assert code(harness) == "expired"
    assert harness.last(PlaProposalClosed).outcome == "expired"
    assert harness.of(HidCommitRequested) == []


def test_a_proposal_expires_by_itself_and_makes_room() -> None:
    harness = PlaHarness().mode("SUGGEST")
    first = harness.propose(lifetime_s=2.0)
    second = harness.propose()
    assert harness.last(PlaProposalClosed).proposal_id == second.proposal_id, "one is open at a time"
    harness.advance(3)
    closed = harness.last(PlaProposalClosed)
    assert (closed.proposal_id, closed.outcome) == (first.proposal_id, "expired")
    harness.decide(first)
    assert code(harness) == "expired", "whether the decision or the timer came first"
    harness.propose(TypeText(text="a"))
    assert len(harness.warden.open_proposals) == 1


def test_an_approval_that_expires_before_the_order_types_nothing() -> None:
    harness = PlaHarness().ready()
    obedient = harness.device
    harness.device = lambda event: None if event.type == "hid.prepare_requested" else obedient(event)
    harness.decide(harness.propose())
    harness.advance(61)
    harness.device = obedient
    harness.go()
    ended = harness.last(PlaExecuted)
    assert ended.outcome == "not_executed"
    assert "the approval expired" in ended.why
    assert harness.of(HidCommitRequested) == []


@each("reason", ["", " ", "\n\t"])
def test_a_rejection_needs_a_reason(reason: str) -> None:
    harness = PlaHarness().mode("SUGGEST")
    proposed = harness.propose()
    harness.decide(proposed, "REJECTED", reason=reason)
    assert code(harness) == "reason"
    harness.decide(proposed, "REJECTED", reason="not now")
    assert harness.last(PlaRejected).reason == "not now"
    assert harness.last(PlaProposalClosed).outcome == "rejected"


def test_what_is_said_of_a_second_decision_is_what_became_of_the_first() -> None:
    harness = PlaHarness().ready()
    rejected = harness.propose()
    harness.decide(rejected, "REJECTED", reason="not this")
    harness.decide(rejected)
    assert code(harness) == "decided"
    assert harness.last(PlaDecisionRefused).reasons == ["the proposal is rejected already"]
    approved = harness.propose()
    harness.decide(approved)
    harness.decide(approved, "REJECTED", reason="too late")
    assert code(harness) == "decided"
    assert harness.last(PlaDecisionRefused).reasons == ["the proposal is executed already; an approval is used once"]


def test_nobody_decides_on_what_does_not_exist() -> None:
    harness = PlaHarness()
    harness.tell(
        PlaDecisionRequested(
            proposal_id="prop-of-nobody", decision="APPROVED", digest="", operator_id=ALICE, channel="cli"
        )
    )
    assert code(harness) == "unknown"


def test_credentials_need_an_acknowledgement_and_five_seconds() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose(findings=["password"], policy="acknowledge")
    harness.decide(proposed)
    assert code(harness) == "credential"
    harness.decide(proposed, acknowledged=True)
    assert code(harness) == "wait"
    harness.advance(5)
    harness.decide(proposed, acknowledged=True)
    assert harness.last(PlaApproved).credential_acknowledged
    assert harness.last(PlaExecuted).outcome == "done"


def test_nothing_is_approved_that_would_wait_to_be_typed() -> None:
    harness = PlaHarness().link().mode("SUGGEST", "EXECUTE")
    proposed = harness.propose()
    harness.decide(proposed)
    assert code(harness) == "not_armed"
    harness.arm()
    harness.tell(PlaDisarmRequested(operator_id=BOB, channel="cli"))
    harness.decide(proposed)
    assert code(harness) == "not_armed"
    harness.tell(PlaArmRequested(operator_id=ALICE, channel="cli"))
    harness.decide(proposed)
    assert harness.last(PlaExecuted).outcome == "done"


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
    harness = PlaHarness().mode("SUGGEST")
    asked = harness.tell(
        PlaContractBroken(
            contract="action_execute", kind=kind, pointer="/payload/text", text="it is too long", by="border",
            channel="document",
        )
    )
    (told,) = harness.of(PlaViolation)
    assert (told.correlation, told.data.severity, told.data.handling) == (asked.correlation, severity, handling)
    assert told.data.text == "it is too long at /payload/text"
    assert harness.of(PlaExecutionRequested) == []
    assert harness.warden.mode == ("OBSERVE" if kind == "mode_mismatch" else "SUGGEST"), "HID is disabled"


def test_a_document_made_for_another_mode_ends_what_is_typed() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose()
    harness.tell(
        PlaContractBroken(
            contract="action_proposal", kind="mode_mismatch", pointer="/mode", text="it was made for SUGGEST",
            by="border", channel="document",
        )
    )  # fmt: skip
    changed = harness.last(PlaModeChanged)
    assert (changed.previous, changed.mode, changed.who) == ("EXECUTE", "OBSERVE", "border")
    assert (changed.code, changed.channel) == ("mode_mismatch", "document")
    assert len(harness.of(HidDisarmRequested)) == 1
    assert harness.warden.proposals[proposed.proposal_id].outcome == "withdrawn"


def state_of(harness: PlaHarness) -> Any:
    """The warden's proposals."""
    return harness.warden.proposals


def test_old_proposals_leave_the_state_and_open_ones_stay() -> None:
    harness = PlaHarness().mode("SUGGEST")
    for number in range(105):
        harness.decide(harness.propose(TypeText(text=f"{number}")), "REJECTED", reason="no")
    last = harness.propose()
    assert len(state_of(harness)) == 100
    assert last.proposal_id in state_of(harness)
