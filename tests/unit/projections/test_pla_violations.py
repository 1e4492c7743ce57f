"""Each row of the specification's table of violations, as the logs of a session tell it."""

from __future__ import annotations

import json
from typing import Any

from pmagent.actors.pla.violations import violation
from pmagent.contracts.pla_events import PlaProposalRequested
from pmagent.projections.sessions.entries import answered
from tests.support.cases import each
from tests.support.pla_sessions import KINDS, SESSION, Tale, entries, job

LOG = f"sessions/{SESSION}.jsonl"
VIOLATIONS = f"sessions/{SESSION}.violations.jsonl"


def begun() -> Tale:
    tale = Tale()
    tale.begin()
    tale.mode("OBSERVE", "SUGGEST")
    return tale


def last(tale: Tale, path: str = LOG) -> dict[str, Any]:
    return entries(tale.events, path)[-1]


ROWS = [
    ("schema_validation", "error", ("rejected", "operator is told")),
    ("missing_field", "error", ("validation error",)),
    ("bound_exceeded", "error", ("rejected", "operator is told")),
    ("mode_mismatch", "warning", ("HID is disabled", "mode has to be set again")),
    ("missing_approval", "error", ("execution is rejected", "approval is required")),
    ("contract_mismatch", "warning", ("no HID action",)),
]
"""Kind, severity, and what the handling says; the last row is that of the version rules."""


@each("kind, severity, handled", ROWS)
def test_each_kind_of_violation_is_told_in_both_logs_with_its_handling(
    kind: str, severity: str, handled: tuple[str, ...]
) -> None:
    tale = begun()
    tale.violate(kind, text="what was wrong")
    for path in (LOG, VIOLATIONS):
        one = last(tale, path)
        details = one["details"]
        assert (one["event_type"], details["kind"], details["severity"]) == ("ERROR", kind, severity)
        assert (details["contract"], details["by"]) == ("action_proposal", "brain")
        assert details["error_message"] == "what was wrong"
        assert all(part in details["handling"] for part in handled), details["handling"]
    assert last(tale, LOG)["log_id"] == last(tale, VIOLATIONS)["log_id"]
    tale.end()
    assert job(tale.events)["result"]["errors"] == 1
    assert job(tale.events)["result"]["violations"] == VIOLATIONS


def test_the_table_is_whole() -> None:
    assert {row[0] for row in ROWS} == set(KINDS)


def test_violations_are_a_chain_of_their_own() -> None:
    tale = begun()
    for kind in KINDS:
        tale.violate(kind)
    told = entries(tale.events, VIOLATIONS)
    assert [one["details"]["kind"] for one in told] == KINDS
    assert told[0]["previous_log_checksum"] == "0" * 64
    assert [one["previous_log_checksum"] for one in told[1:]] == [one["checksum"] for one in told[:-1]]


def test_a_violation_names_who_asked_for_what_violated() -> None:
    tale = begun()
    asked = tale.tell(PlaProposalRequested(goal="type: x", requested_by="carol", channel="cli")).position
    event = tale.tell(violation("bound_exceeded", "action_proposal", "x", "brain", session_id=SESSION), causation=asked)
    assert event.actor in {"brain", "warden", "hid"}
    assert last(tale)["operator_id"] == "carol"


def test_those_that_answer_an_operator_are_told_from_those_that_nobody_asked_for() -> None:
    tale = begun()
    asked = tale.tell(PlaProposalRequested(goal="type: x", requested_by="carol", channel="cli")).position
    own = [
        tale.tell(violation("bound_exceeded", "action_proposal", "x", "brain", session_id=SESSION), causation=asked),
        tale.tell(violation("missing_field", "action_proposal", "x", "border", session_id=SESSION)),
    ]
    tale.tell(violation("missing_field", "action_proposal", "a model's reply", "brain", session_id=SESSION))
    tale.tell(violation("missing_approval", "action_execute", "x", "hid", session_id=SESSION))
    told = "\n".join(map(json.dumps, entries(tale.events, VIOLATIONS)))
    assert len(told.splitlines()) == 4
    assert answered(told.encode()) == {one.position for one in own}
    assert answered(told.encode() + b"\n[]\nnonsense\n{}\n\xff\n") == {one.position for one in own}
