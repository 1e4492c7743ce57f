"""A model's reply is no proposal, or exactly one action within the bounds of the contracts, whatever it says."""

from __future__ import annotations

import json
from typing import Any

import fastjsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.brain.model_goal import SHAPE_NAME, answer_shape
from pmagent.actors.pla.brain.model_reply import Misfit, Proposal, read_proposal
from pmagent.contracts.model import ModelReplied, ModelToolCall, ModelUsage
from pmagent.contracts.pla import KEYS, action_type, objections, payload
from tests.support.effort import examples

ANSWER = fastjsonschema.compile(answer_shape().schema)

TEXT = st.text(max_size=30)
SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.sampled_from(KEYS))
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=8
)
TYPABLE = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60)
GOOD = st.one_of(
    st.fixed_dictionaries({"action_type": st.just("TYPE_TEXT"), "payload": st.fixed_dictionaries({"text": TYPABLE})}),
    st.fixed_dictionaries(
        {
            "action_type": st.just("KEY_COMBO"),
            "payload": st.fixed_dictionaries({"keys": st.lists(st.sampled_from(KEYS), min_size=1, max_size=7)}),
        }
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_MOVE"),
            "payload": st.fixed_dictionaries({"x": st.integers(-2000, 6000), "y": st.integers(-2000, 6000)}),
        }
    ),
    st.fixed_dictionaries(
        {
            "action_type": st.just("MOUSE_CLICK"),
            "payload": st.fixed_dictionaries({"button": st.sampled_from(["left", "middle", "both"])}),
        }
    ),
)
RATIONALE = st.just("this is the next step") | TEXT


@st.composite
def shapes(draw: st.DrawFn) -> Any:
    """Something that a model may reply: mostly the right shape, with something changed in it."""
    shape: dict[str, Any] = {**draw(GOOD), "rationale": draw(RATIONALE)}
    match draw(st.sampled_from(["as it is", "as it is", "drop", "add", "change", "change the payload", "anything"])):
        case "drop":
            del shape[draw(st.sampled_from(sorted(shape)))]
        case "add":
            shape[draw(TEXT)] = draw(VALUE)
        case "change":
            shape[draw(st.sampled_from(sorted(shape)))] = draw(VALUE)
        case "change the payload":
            shape["payload"][draw(TEXT | st.sampled_from(sorted(shape["payload"])))] = draw(VALUE)
        case "anything":
            return draw(VALUE)
    return shape


def taken(reply: ModelReplied) -> Proposal | None:
    try:
        return read_proposal(reply)
    except Misfit as misfit:
        assert misfit.kind in ("schema_validation", "missing_field", "bound_exceeded")  # noqa: PT017
        return None


@given(shapes())
@settings(max_examples=examples(400), deadline=None)
def test_a_reply_is_no_proposal_or_one_action_within_bounds(shape: Any) -> None:
    usage = ModelUsage(input_tokens=1, output_tokens=1, counted=True)
    text = json.dumps(shape)
    found = taken(ModelReplied(request=1, ask=1, content=text, tool_calls=[], usage=usage, latency_ms=1))
    if isinstance(shape, dict):
        calls = [ModelToolCall(id="1", name=SHAPE_NAME, args=shape)]
        assert taken(ModelReplied(request=1, ask=1, content="", tool_calls=calls, usage=usage, latency_ms=1)) == found
    if found is None or found.action is None:
        return
    assert objections(found.action) == []
    assert {"action_type": action_type(found.action), "payload": payload(found.action)} == {
        "action_type": shape["action_type"],
        "payload": shape["payload"],
    }
    assert set(shape) == {"action_type", "payload", "rationale"}
    assert 10 <= len(found.rationale) <= 2000
    ANSWER(shape)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_no_text_does_more_than_not_fit(text: str) -> None:
    usage = ModelUsage(input_tokens=1, output_tokens=1, counted=True)
    assert taken(ModelReplied(request=1, ask=1, content=text, tool_calls=[], usage=usage, latency_ms=1)) is None
