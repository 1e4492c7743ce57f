"""A model's answer by itself: one action that the operator's policy lets through is proposed, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from pmagent.actors.pla.brain.model_goal import NOTHING, SHAPE_NAME
from pmagent.actors.pla.brain.model_reply import REPLY_BYTES_MAX, Misfit, read_proposal
from pmagent.contracts.model import IMAGE_BYTES_MAX, ModelAsked, ModelFailed, ModelReplied, ModelToolCall
from pmagent.contracts.pla_events import PlaProposalRefused, PlaViolation
from pmagent.events.secret_forms import MASK
from tests.support.brain_alone import (
    EMPTY,
    OF_MODEL,
    PENDING,
    SECRET,
    SOURCE,
    WAITING,
    frame,
    happened,
    kinds,
    made,
    remembered,
    replace,
    replied,
    said,
)
from tests.support.cases import each

# --- what a model says ----------------------------------------------------------------------------------------------


def called(args: dict[str, Any], *names: str) -> ModelReplied:
    calls = [ModelToolCall(id="1", name=name, args=args) for name in names or (SHAPE_NAME,)]
    return replied("x", tool_calls=calls)


GIVEN = json.loads(said())
DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]

MISFITS: dict[str, ModelReplied] = {
    "nothing": replied(" "),
    "no JSON": replied("ls"),
    "text around it": replied("Sure: " + said()),
    "text behind it": replied(said() + "."),
    "text before a block": replied(f"Sure:\n{said()}```"),
    "text behind a block": replied(f"```\n{said()}abc"),
    "a list": replied(f"[{said()}]"),
    "a key twice": replied('{"payload": {"text": "id"}, ' + said()[1:]),
    "no rationale": replied(json.dumps({name: GIVEN[name] for name in ("action_type", "payload")})),
    "another field": replied(said(approved=True)),
    "another type": replied(said(action_type="SHELL")),
    "no type": replied(said(action_type=["TYPE_TEXT"])),
    "another payload": replied(said(payload={"keys": ["a"]})),
    "a second payload": replied(said(payload={"text": "a", "keys": ["a"]})),
    "payload that is none": replied(said(payload=["text"])),
    "something with nothing": replied(said(action_type=NOTHING)),
    "short rationale": replied(said(rationale=" because\n\n\n ")),
    "long rationale": replied(said(rationale="x" * 2001)),
    "rationale that is none": replied(said(rationale=["to see what is there"])),
    "text that is none": replied(said(payload={"text": 1})),
    "no text": replied(said(payload={"text": ""})),
    "long text": replied(said(payload={"text": "x" * 1025})),
    "text that cannot be typed": replied(said(payload={"text": "\x1b"})),
    "keys that are none": replied(said(action_type="KEY_COMBO", payload={"keys": "a"})),
    "key that is none": replied(said(action_type="KEY_COMBO", payload={"keys": [1]})),
    "far": replied(said(action_type="MOUSE_MOVE", payload={"x": 5001, "y": 0})),
    "x that is none": replied(said(action_type="MOUSE_MOVE", payload={"x": True, "y": 0})),
    "y that is none": replied(said(action_type="MOUSE_MOVE", payload={"x": 0, "y": 0.5})),
    "button that is none": replied(said(action_type="MOUSE_CLICK", payload={"button": 1})),
    "another button": replied(said(action_type="MOUSE_CLICK", payload={"button": "all"})),
    "long": replied(said() + " " * 2 + "\n" * 2 + "{" * REPLY_BYTES_MAX),
    "long with blanks in it": replied(said().replace(": ", ":" + " " * REPLY_BYTES_MAX, 1)),
    "two objects": replied(said() + said()),
    "deep": replied('{"a":' * 500 + "1" + "}" * 500),
    "no number": replied('{"action_type": NaN}'),
    "a large number": replied(said(action_type="MOUSE_MOVE", payload={"x": 10**30, "y": 2})),
    "blank rationale": replied(said(rationale=" " * 20)),
    "rationale that is a list in a call": called({**GIVEN, "rationale": ["a reason, in a list"]}),
    "a refusal": replied(said(), finish="refusal"),
    "two calls": called(GIVEN, SHAPE_NAME, SHAPE_NAME),
    "another tool": called(GIVEN, "shell"),
    "long call": called({**GIVEN, "rationale": "x " * REPLY_BYTES_MAX}),
    "call with what is no JSON": called({**GIVEN, "payload": {"text": "\ud800"}}),
    "lone surrogate": replied(said().replace("ls", "\ud800")),
}


@each("reply", MISFITS)
def test_a_reply_that_is_not_just_one_action_is_none(reply: str) -> None:
    with pytest.raises(Misfit):
        read_proposal(MISFITS[reply])


def test_a_long_call_is_told_as_long() -> None:
    """Before anything else is made of it."""
    with pytest.raises(Misfit, match="longer than"):
        read_proposal(MISFITS["long call"])


def test_a_reply_that_is_none_is_asked_for_again_and_three_are_read() -> None:
    (again,) = made(WAITING, happened(replied("ls")))
    assert isinstance(again, ModelAsked)
    counted = remembered(WAITING, again, "brain").pending
    assert counted is not None
    assert (counted.tries, counted.more) == (1, again.messages[2:])
    second, third = (replace(EMPTY, pending=replace(PENDING, tries=tries)) for tries in (1, 2))
    assert kinds(second, happened(replied("ls"))) == {ModelAsked}
    assert kinds(third, happened(replied("ls"))) == {PlaProposalRefused, PlaViolation}


@each(
    "changes",
    [
        {"payload": {"text": SECRET.text}}, {"rationale": f"it is {MASK} there"}, {"payload": {"text": f"echo {MASK}"}},
        {"action_type": NOTHING, "payload": {}},
    ],
)  # fmt: skip
@each("policy", ["refuse", "acknowledge"])
def test_no_credential_and_nothing_of_a_model_is_proposed(changes: Any, policy: Any) -> None:
    state = replace(EMPTY, pending=replace(PENDING, asked=replace(OF_MODEL, policy=policy)))
    assert kinds(state, happened(replied(said(changes)))) == {PlaProposalRefused}


def test_a_models_reason_is_shown_without_credentials() -> None:
    (proposed,) = made(WAITING, happened(replied(said(rationale="the screen says: the password is swordfish"))))
    assert "swordfish" not in proposed.rationale


def test_no_answer_of_a_model_is_no_proposal() -> None:
    failed = happened(ModelFailed(ask=35, code="rejected", text="x", attempts=1), "model", "decision")
    assert kinds(WAITING, failed) == {PlaProposalRefused}
    pictured = replace(EMPTY, pending=replace(PENDING, pictured=True))
    assert kinds(pictured, failed) == {ModelAsked}
    other = happened(ModelFailed(ask=35, code="tokens", text="x", attempts=1), "model", "decision")
    assert kinds(pictured, other) == {PlaProposalRefused}


@each(
    "changes, shown",
    [({}, True), ({"kept": False}, False), ({"media_type": "image/gif"}, False), ({"size": IMAGE_BYTES_MAX + 1}, False),
     ({"size": IMAGE_BYTES_MAX}, True)],
)  # fmt: skip
def test_only_a_picture_that_is_kept_and_can_be_shown_is_shown_to_a_model(changes: Any, shown: bool) -> None:
    state = replace(EMPTY, pending=replace(PENDING, asked=replace(OF_MODEL, frame=SOURCE), model=False))
    (question,) = made(state, happened(frame(**changes)))
    assert (question.messages[1].images is not msgspec.UNSET) == shown
