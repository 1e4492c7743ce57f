"""Proposals as documents: for programs, and as the contract has them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given

from pmagent.actors.pla.warden.state import ProposalView
from pmagent.contracts.checking import check
from pmagent.contracts.pla import TEXT_CHARS_MAX, Action, TypeText, digest
from pmagent.contracts.pla_events import PlaProposed
from pmagent.pla import foreign_documents, reading
from tests.support.cases import each
from tests.support.pla_documents import actions

AT = "2026-11-22T09:00:00.000000Z"
UNTIL = "2026-11-22T09:05:00.000000Z"


def view(action: Action, **more: Any) -> ProposalView:
    """A proposal of this action."""
    fields: dict[str, Any] = {
        "request": 3, "session_id": "pla-12345678", "proposal_id": "prop-12345678", "mode": "SUGGEST",
        "action": action, "masked": False, "digest": digest(action), "chars": 0, "rationale": "it was asked for",
        "credential_warning": False, "findings": [], "policy": "refuse", "requested_by": "ada",
        "proposed_by": "rules", "channel": "cli", "expires_at": UNTIL,
    }  # fmt: skip
    return ProposalView(proposed=PlaProposed(**fields | more), position=7, proposed_at=AT)


@given(actions)
def test_what_is_handed_out_is_an_action_proposal_that_the_border_takes_back_as_the_same(action: Any) -> None:
    plain = msgspec.convert({"action_type": action["action_type"], **action["payload"]}, Action)
    document = reading.contract_document(view(plain))
    if isinstance(plain, TypeText) and len(plain.text) > TEXT_CHARS_MAX:
        return
    assert check("action_proposal", document) == []
    taken = foreign_documents.proposal(json.dumps(document), "SUGGEST")
    assert isinstance(taken, foreign_documents.Proposed)
    assert (taken.action, digest(taken.action)) == (plain, digest(plain))


def test_a_mask_that_is_longer_than_the_contract_allows_is_cut() -> None:
    long = TypeText(text="***REDACTED*** " * 80)
    document = reading.contract_document(view(long, masked=True, credential_warning=True))
    assert check("action_proposal", document) == []
    assert document["payload"]["text"] == long.text[:TEXT_CHARS_MAX]


def test_the_frame_that_it_rests_on_is_its_screen_context() -> None:
    assert "screen_context" not in reading.contract_document(view(TypeText(text="a"), ocr_text="x"))
    document = reading.contract_document(view(TypeText(text="a"), frame=5, ocr_text="x" * 20_000))
    assert check("action_proposal", document) == []
    assert len(document["screen_context"]["ocr_text"]) == 10_000


@each(
    "now, left",
    [(AT, 300.0), ("2026-11-22T09:04:59.500000Z", 0.5), (UNTIL, 0.0), ("2026-11-23T09:00:00.000000Z", 0.0)],
)
def test_it_says_for_how_long_it_stands_open(now: str, left: float) -> None:
    assert reading.proposal_document(view(TypeText(text="a")), now)["seconds_left"] == left


def test_what_is_closed_stands_open_no_more() -> None:
    closed = msgspec.structs.replace(view(TypeText(text="a")), stands="closed", outcome="rejected")
    assert reading.proposal_document(closed, AT)["seconds_left"] == 0.0
