"""Contract documents that others hand in, at the border: proposals of an external brain, decisions made elsewhere
(docs/design.md §16.9).

A document is held against its contract before anything of it is taken. Anything else becomes a fact that says which
contract, where in it, and of which kind, with nothing of its content; the warden makes a violation of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from pmagent.contracts.control import Channel
from pmagent.contracts.pla import APPROVAL_SECONDS, Action, PlaMode, declared, layout_of, objections
from pmagent.contracts.pla_documents import ActionDecision, ActionProposal, action_of
from pmagent.contracts.pla_events import PlaContractBroken, PlaDecisionRequested
from pmagent.events.event import parse_time

PROPOSAL: Final = "action_proposal"
DECISION: Final = "action_decision"

AHEAD_SECONDS: Final = 5.0
"""So much later than ours a clock may be that a decision was dated by."""


T = TypeVar("T")


class Broken(msgspec.Struct, frozen=True):
    """Why a document is none: its contract, the row of the specification's table, where (JSON pointer), and what."""

    contract: str
    kind: str
    pointer: str
    text: str


class Proposed(msgspec.Struct, frozen=True):
    """The parts that are taken of an action_proposal; ``declared``: it says that it holds credentials."""

    proposal_id: str
    action: Action
    rationale: str
    declared: bool


def proposal(text: str, mode: PlaMode, layout: str = "") -> Proposed | Broken:
    """The action_proposal that ``text`` is, made for the ``mode`` that holds now; what names no layout is typed by
    ``layout``."""
    broken = _broken(PROPOSAL, text)
    if broken is not None:
        return broken
    document: Any = msgspec.json.decode(text, type=ActionProposal)
    if document.mode != mode:
        what = f"the proposal was made for {document.mode}, the mode is {mode}"
        return Broken(PROPOSAL, "mode_mismatch", "/mode", what)
    action = action_of(document)
    action = action if layout_of(action) else declared(action, layout)
    for objection in objections(action):  # the schema knows what can be typed at all, and not by which layout
        return Broken(PROPOSAL, objection.kind, "/payload", objection.text)
    return Proposed(document.proposal_id, action, document.rationale, document.credential_warning)


def decision(text: str, now: str) -> PlaDecisionRequested | Broken:
    """The action_decision that ``text`` is, as a request. One that was made more than a minute ago counts no more."""
    broken = _broken(DECISION, text)
    if broken is not None:
        return broken
    document = msgspec.json.decode(text, type=ActionDecision)
    age = (parse_time(now) - datetime.fromisoformat(document.timestamp)).total_seconds()
    if not -AHEAD_SECONDS <= age <= APPROVAL_SECONDS:
        when = f"was made {age:.0f} s ago" if age > 0 else f"is dated {-age:.0f} s ahead"
        what = f"the decision {when}; it counts for {APPROVAL_SECONDS:.0f} s"
        return Broken(DECISION, "bound_exceeded", "/timestamp", what)
    return PlaDecisionRequested(
        proposal_id=document.proposal_id, decision=document.decision, digest=_given(document.digest, ""),
        operator_id=document.operator_id, channel="document", reason=_given(document.override_reason, ""),
        acknowledged=document.credential_acknowledged is True,
    )  # fmt: skip


def fact(broken: Broken, channel: Channel) -> PlaContractBroken:
    """The fact that is recorded of a broken document, handed in over ``channel``."""
    return PlaContractBroken(
        contract=broken.contract, kind=broken.kind, pointer=broken.pointer[:200], text=broken.text[:2000],
        by="border", channel=channel,
    )  # fmt: skip


def _given(value: T | msgspec.UnsetType, otherwise: T) -> T:
    return otherwise if isinstance(value, msgspec.UnsetType) else value


def _broken(contract: str, text: str) -> Broken | None:
    from pmagent.contracts.checking import (
        check_bytes,  # the validator: only who hands in a document waits for its import
    )

    problems = check_bytes(contract, text.encode("utf-8", "surrogatepass"))
    return Broken(contract, problems[0].kind, problems[0].pointer, problems[0].text) if problems else None
