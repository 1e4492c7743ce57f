"""The record of a wish: the action as it may stand in the log, and the digest of the one that would be typed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.pla.goals import GoalError
from pmagent.contracts.pla import KeyCombo, MouseMove, TypeText, digest
from pmagent.contracts.pla_events import GOAL_CHARS_MAX
from pmagent.events.redact import MASK, Redactor
from pmagent.pla.requests import DECLARED, BadProposal, Made, ProposalRequest, made
from pmagent.workspace.settings import PlaSettings
from tests.support.cases import each

SECRET = "tr0ub4dor&3-and-more"
STANDING = PlaSettings(credentials="acknowledge", proposal_seconds=30.0, two_persons=True, calls=3)
redact = Redactor([SECRET]).text


def wished(goal: str = "", **more: object) -> Made:
    """The request for a goal."""
    fields: dict[str, object] = {"goal": goal, "operator": "ada", "channel": "cli", **more}
    return made(msgspec.convert(fields, ProposalRequest), STANDING, redact)


def test_a_literal_goal_is_recorded_as_it_stands_with_its_digest() -> None:
    ready = wished("type: ls -la", why="to see what is there")
    asked = ready.asked
    assert asked.action == TypeText(text="ls -la")
    assert (asked.masked, asked.findings, asked.objection, asked.chars) == (False, [], "", 6)
    assert asked.digest == digest(TypeText(text="ls -la"))
    assert ready.secret is None
    assert (asked.goal, asked.rationale, asked.requested_by) == ("type: ls -la", "to see what is there", "ada")


def test_the_settings_go_into_the_request() -> None:
    asked = wished("keys: ctrl+c").asked
    assert (asked.policy, asked.lifetime_s, asked.two_persons, asked.limits.calls) == ("acknowledge", 30.0, True, 3)


def test_a_secret_is_masked_wherever_it_stands_and_the_digest_is_that_of_the_plain_text() -> None:
    ready = wished(f"type: {SECRET}", why=f"it is {SECRET}")
    asked = ready.asked
    assert SECRET.encode() not in msgspec.json.encode(asked)
    assert ready.secret == TypeText(text=SECRET)
    assert asked.masked
    assert asked.findings
    assert asked.digest == digest(TypeText(text=SECRET)) != digest(asked.action or TypeText(text=""))
    assert asked.chars == len(SECRET)


@given(
    before=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    after=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
)
def test_no_secret_of_this_process_is_ever_recorded(before: str, after: str) -> None:
    asked = wished("document", why=f"{after} {SECRET}", action=TypeText(text=f"{before}{SECRET}{after}")).asked
    assert SECRET.encode() not in msgspec.json.encode(asked)


def test_the_intake_changes_nothing_more_of_what_is_masked() -> None:
    asked = wished(f"type: x {SECRET} y").asked
    assert Redactor([SECRET]).value(asked) == asked


@each("goal, kind", [
    ("type: " + "x" * 1025, "bound_exceeded"),
    ("type: ", "missing_field"),
    ("type: na\u00efve", "schema_validation"),
    ("keys: ctrl+ctrl+a", "schema_validation"),
    ("move: 5001 0", "bound_exceeded"),
])
def test_what_stands_against_the_plain_action_is_recorded_with_its_kind(goal: str, kind: str) -> None:
    asked = wished(goal).asked
    assert asked.objection
    assert asked.objection_kind == kind


def test_what_states_nothing_is_a_request_without_an_action() -> None:
    assert wished("open the log").asked.action is None


def test_with_a_model_nothing_is_read_literally_and_the_goal_is_masked_too() -> None:
    asked = wished(f"type: {SECRET}", model="anthropic:x").asked
    assert asked.action is None
    assert asked.digest == ""
    assert SECRET not in asked.goal


def test_a_goal_that_fails_is_an_error_and_no_request() -> None:
    with pytest.raises(GoalError):
        wished("keys: ctrl+nokey")


def test_a_document_s_action_is_taken_as_it_is_and_its_warning_is_believed() -> None:
    asked = wished("document prop-external", action=MouseMove(x=3, y=-4), declared=True).asked
    assert asked.action == MouseMove(x=3, y=-4)
    assert asked.findings == [DECLARED]
    assert wished("document p", action=KeyCombo(keys=["a"])).asked.findings == []


def test_a_goal_that_is_too_long_is_refused_before_it_is_looked_at() -> None:
    with pytest.raises(BadProposal, match="longer than"):
        wished("x" * (GOAL_CHARS_MAX + 1))


def test_a_goal_whose_masks_make_it_too_long_is_refused() -> None:
    short = "hunter"  # a mask is longer
    narrow = Redactor([short]).text
    assert len(MASK) > len(short)
    wish = ProposalRequest(goal=f"{short} " * (GOAL_CHARS_MAX // 7), operator="ada", channel="cli", model="a:b")
    with pytest.raises(BadProposal):
        made(wish, STANDING, narrow)
