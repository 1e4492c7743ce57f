"""Envelopes for any content: frozen, equal to what was given, and deaf to what is done to it later."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.kernel import Mode
from pmagent.contracts.reasoning import PROGRAM_IDS, PROGRAM_TOOLS, ShapeError
from pmagent.oa.forms import CONSTRAINTS, merged
from pmagent.oa.kernel_view import SURFACES
from pmagent.oa.reasoning import build_envelope
from pmagent.oa.reasoning_bridge import (
    EnvelopeError,
    FrozenDict,
    FrozenList,
    ReasoningEnvelope,
    checked_envelope,
    freeze,
)
from tests.support.effort import examples

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXT
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=25
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=5)


def containers(value: Any) -> Iterator[Any]:
    """Every dict and list in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


def spoil(value: Any) -> None:
    """Change every dict and list in a plain value."""
    for one in list(containers(value)):
        if isinstance(one, dict):
            one.clear()
            one["spoilt"] = True
        else:
            one[:] = ["spoilt"]


@settings(max_examples=examples(300), deadline=None)
@given(JSON)
def test_a_frozen_value_is_what_was_given_and_stays_it(value: Any) -> None:
    frozen, before = freeze(value), copy.deepcopy(value)
    spoil(value)
    assert frozen == before
    assert msgspec.json.encode(frozen) == msgspec.json.encode(before)
    assert pickle.loads(pickle.dumps(frozen)) == before
    assert copy.deepcopy(frozen) == before
    for one in containers(frozen):
        assert type(one) in (FrozenDict, FrozenList)
        with pytest.raises(TypeError, match="is frozen"):
            one.clear()
        with pytest.raises(TypeError, match="is frozen"):
            one.pop()
        with pytest.raises(TypeError, match="is frozen"):
            one[0] = 1
    assert frozen == before
    assert freeze(frozen) == frozen


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(PROGRAM_IDS), TEXT.filter(str.strip), OBJECT, OBJECT, OBJECT, OBJECT, OBJECT, st.data(),
    st.sampled_from(["NORMAL", "DEGRADED", "BLOCKED"]),
)
def test_an_envelope_holds_what_was_given_and_nothing_that_is_done_later(
    program: str, goal: str, bootstrap: Any, ssot: Any, reality: Any, state: Any, context: Any, data: st.DataObject,
    mode: Mode,
) -> None:
    kernel = {"mode": mode, "bootstrap": bootstrap, "ssot_index": ssot, "reality_summary": reality, "oa_state": state}
    tools = data.draw(st.lists(st.sampled_from(PROGRAM_TOOLS[program]), unique=True))
    before = copy.deepcopy((kernel, context, tools))
    made = build_envelope(program, goal, kernel, context, tools)
    spoil(kernel)
    spoil(context)
    spoil(tools)
    plain = msgspec.to_builtins(made)
    assert (plain["kernel_state_ref"], plain["oa_context"], plain["tools_allowed"]) == before
    assert (plain["program_id"], plain["goal"]) == (program, goal)
    assert checked_envelope(plain) == made
    assert checked_envelope(json.loads(msgspec.json.encode(made))) == made


@settings(max_examples=examples(200), deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*SURFACES, "oa_state"), OBJECT)))
def test_a_mode_is_judged_from_any_surfaces_and_never_better_than_blocked_without_them(kernel: dict[str, Any]) -> None:
    made = build_envelope("GuardFailureInterpreter", "why?", kernel, {})
    if not all(kernel.get(name) for name in SURFACES):
        assert made.kernel_state_ref.mode == "BLOCKED"
    for name in (*SURFACES, "oa_state"):
        assert getattr(made.kernel_state_ref, name) == kernel.get(name, {})


ANYTHING = st.recursive(
    LEAVES | st.binary(max_size=3) | st.just(float("nan")) | st.just("\ud800") | st.just({1, 2}) | st.just(len),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(TEXT | st.integers(), inner, max_size=3)
    | st.tuples(inner, inner),
    max_leaves=15,
)


@settings(max_examples=examples(300), deadline=None)
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_anything_makes_an_envelope_that_encodes_or_one_error(goal: Any, kernel: Any, context: Any, tools: Any) -> None:
    made: ReasoningEnvelope | EnvelopeError
    try:
        made = build_envelope("SafeOPSDecision", goal, {"oa_state": kernel}, {"c": context}, tools)
    except EnvelopeError as error:
        made = error
    if isinstance(made, EnvelopeError):
        assert made.message.encode(), "it can be written"
        assert len(made.message) < 1000
    else:
        assert msgspec.json.decode(msgspec.json.encode(made)) == msgspec.to_builtins(made)


@settings(max_examples=examples(300), deadline=None)
@given(ANYTHING)
def test_freezing_ends_in_json_or_in_a_shape_error(value: Any) -> None:
    try:
        frozen = freeze(value)
    except ShapeError as error:
        frozen = {"error": str(error)}
    assert msgspec.json.decode(msgspec.json.encode(frozen)) == msgspec.to_builtins(frozen)


CONTEXT = st.dictionaries(st.sampled_from([CONSTRAINTS, "active_goal", "x"]), JSON, max_size=3)


@settings(max_examples=examples(300), deadline=None)
@given(CONTEXT, CONTEXT)
def test_no_constraint_of_the_workspace_is_lost(workspace: dict[str, Any], form: dict[str, Any]) -> None:
    made = merged(workspace, form)
    for side in (workspace, form):
        held = side.get(CONSTRAINTS)
        for one in held if isinstance(held, list) else [] if held is None else [held]:
            assert one in made[CONSTRAINTS]
    assert {**made, CONSTRAINTS: None} == {**workspace, **form, CONSTRAINTS: None}
