"""Documents of others: what is taken of them, and what is said of those that are none."""

from __future__ import annotations

import json
from typing import Any

from pmagent.contracts.pla import KeyCombo, TypeText
from pmagent.contracts.pla_events import PlaDecisionRequested
from pmagent.pla import foreign_documents
from tests.support.cases import each

NOW = "2026-11-22T09:00:00.000000Z"
DIGEST = "ab" * 32


def proposal(**more: Any) -> str:
    """An action_proposal document, with other or further fields."""
    document = {
        "proposal_id": "ext-00000001", "timestamp": "2026-11-22T08:59:59Z", "mode": "SUGGEST",
        "action_type": "TYPE_TEXT", "payload": {"text": "ls\n"}, "rationale": "to see what is there",
        "credential_warning": False, "safety_bounds": {"max_chars": 1024, "rate_limit_ms": 100},
    }  # fmt: skip
    return json.dumps(document | more)


def decision(**more: Any) -> str:
    """An action_decision document, with other or further fields."""
    document = {
        "proposal_id": "prop-00000001", "decision": "APPROVED", "timestamp": "2026-11-22T08:59:59Z",
        "operator_id": "ada", "digest": DIGEST,
    }  # fmt: skip
    return json.dumps(document | more)


def test_of_a_proposal_its_action_and_its_reason_are_taken() -> None:
    taken = foreign_documents.proposal(proposal(credential_warning=True), "SUGGEST")
    action = TypeText(text="ls\n")
    assert taken == foreign_documents.Proposed("ext-00000001", action, "to see what is there", declared=True)
    keys = foreign_documents.proposal(proposal(action_type="KEY_COMBO", payload={"keys": ["ctrl", "c"]}), "SUGGEST")
    assert isinstance(keys, foreign_documents.Proposed)
    assert keys.action == KeyCombo(keys=["ctrl", "c"])


@each("document, kind, pointer", [
    ("{", "schema_validation", ""),
    ("[]", "schema_validation", ""),
    (proposal(payload={"text": "x" * 1025}), "bound_exceeded", "/payload/text"),
    (proposal(payload={"keys": ["a"]}), "missing_field", "/payload"),
    (proposal(payload={"text": "a", "keys": ["b"]}), "schema_validation", "/payload"),
    (proposal(extra=1), "schema_validation", ""),
    (proposal(mode="EXECUTE"), "mode_mismatch", "/mode"),
    ('{"mode": "SUGGEST", ' + proposal()[1:], "schema_validation", ""),
])
def test_what_is_no_proposal_is_told_by_kind_and_place_with_nothing_of_it_taken(
    document: str, kind: str, pointer: str
) -> None:
    broken = foreign_documents.proposal(document, "SUGGEST")
    assert isinstance(broken, foreign_documents.Broken)
    assert (broken.contract, broken.kind) == ("action_proposal", kind)
    assert broken.pointer == pointer


def test_what_is_said_of_a_bad_document_holds_nothing_of_its_content() -> None:
    for text in ("hunter2-hunter2\u00e9", "hunter2-hunter2" * 100):
        broken = foreign_documents.proposal(proposal(payload={"text": text}), "SUGGEST")
        assert isinstance(broken, foreign_documents.Broken)
        assert "hunter2" not in broken.text + broken.pointer
        assert "hunter2" not in repr(foreign_documents.fact(broken, "cli"))


def test_a_decision_becomes_a_request_over_the_channel_of_documents() -> None:
    taken = foreign_documents.decision(decision(), NOW)
    assert taken == PlaDecisionRequested(
        proposal_id="prop-00000001", decision="APPROVED", digest=DIGEST, operator_id="ada", channel="document"
    )
    refused = foreign_documents.decision(decision(decision="REJECTED", override_reason="the wrong window"), NOW)
    assert isinstance(refused, PlaDecisionRequested)
    assert refused.reason == "the wrong window"


def test_an_approval_without_a_digest_is_passed_on_without_one() -> None:
    document = json.loads(decision())
    del document["digest"]
    taken = foreign_documents.decision(json.dumps(document), NOW)
    assert isinstance(taken, PlaDecisionRequested)
    assert taken.digest == "", "and the warden refuses it: nothing says what was shown"


@each(
    "timestamp, said",
    [("2026-11-22T08:58:00Z", "was made 120 s ago"), ("2026-11-22T10:00:00Z", "is dated 3600 s ahead")],
)
def test_it_is_said_how_far_off_a_decision_is(timestamp: str, said: str) -> None:
    broken = foreign_documents.decision(decision(timestamp=timestamp), NOW)
    assert isinstance(broken, foreign_documents.Broken)
    assert said in broken.text


@each("timestamp, counts", [
    ("2026-11-22T08:59:00Z", True),
    ("2026-11-22T08:58:59.999999Z", False),
    ("2026-11-22T10:59:30+02:00", True),
    ("2026-11-22T09:00:05Z", True),
    ("2026-11-22T09:00:05.000001Z", False),
    ("2025-11-22T09:00:00Z", False),
    ("0001-01-01T00:00:00+23:59", False),
    ("9999-12-31T23:59:59.999999-23:59", False),
])
def test_a_decision_counts_for_a_minute(timestamp: str, counts: bool) -> None:
    taken = foreign_documents.decision(decision(timestamp=timestamp), NOW)
    if counts:
        assert isinstance(taken, PlaDecisionRequested)
    else:
        assert isinstance(taken, foreign_documents.Broken)
        assert (taken.kind, taken.pointer) == ("bound_exceeded", "/timestamp")


def test_a_rejection_without_a_reason_is_none() -> None:
    for more in ({}, {"override_reason": ""}, {"override_reason": " "}):
        broken = foreign_documents.decision(decision(decision="REJECTED", **more), NOW)
        assert isinstance(broken, foreign_documents.Broken), more


def test_lone_surrogates_are_no_document() -> None:
    broken = foreign_documents.proposal(proposal()[:-1] + ', "x": "\ud800"}', "SUGGEST")
    assert isinstance(broken, foreign_documents.Broken)
