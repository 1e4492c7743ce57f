"""How replies of models become opinions: exactly those that are one, and everything else is said to be none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pmagent.actors.audit.clerk import Brief
from pmagent.actors.audit.judges.opinions import SHAPE_NAME, Misfit, answer_shape, read_opinion, shown
from pmagent.contracts.audit import JudicialOpinion
from pmagent.contracts.audit_events import (
    ARGUMENT_CHARS_MAX,
    CITATION_CHARS_MAX,
    CITATIONS_MAX,
    REASON_CHARS_MAX,
    AuditOpinionGiven,
)
from pmagent.contracts.model import ModelReplied, ModelToolCall, ModelUsage
from pmagent.contracts.payload import decode, encode
from tests.support.audits import dimension
from tests.support.cases import each
from tests.support.effort import examples

BRIEF = Brief(judge="TechLead", round=1, dimension=dimension("state"), evidence=[])

GOOD: dict[str, Any] = {
    "judge": "TechLead", "criterion_id": "state", "score": 4, "argument": "It holds (src/app.py:3).",
    "cited_evidence": ["state#1", "state#2"],
}  # fmt: skip


def replied(content: str = "", *calls: dict[str, Any], name: str = SHAPE_NAME, finish: str = "stop") -> ModelReplied:
    """A reply with this text and calls of the answer with these arguments."""
    return ModelReplied(
        request=2, ask=1, content=content, finish=finish, latency_ms=1,
        tool_calls=[ModelToolCall(id=f"c{n}", name=name, args=args) for n, args in enumerate(calls)],
        usage=ModelUsage(input_tokens=1, output_tokens=1, counted=True),
    )  # fmt: skip


def objection(reply: ModelReplied) -> str:
    """Why the reply is no opinion."""
    with pytest.raises(Misfit) as caught:
        read_opinion(BRIEF, reply)
    return str(caught.value)


# --- where the answer stands ---------------------------------------------------------------------------------------


@each(
    "reply",
    [
        replied("", GOOD),
        replied("Let me think. I charge 2.", GOOD),
        replied(json.dumps(GOOD)),
        replied(f"\n  {json.dumps(GOOD, indent=2)}\n"),
        replied(f"```json\n{json.dumps(GOOD)}\n```"),
        replied(f"```\n{json.dumps(GOOD)}```\n"),
    ],
)
def test_an_opinion_is_read_from_a_call_or_from_text(reply: ModelReplied) -> None:
    assert read_opinion(BRIEF, reply) == JudicialOpinion(**GOOD)


NO_JSON = "it is not one JSON object and nothing else, or nested deeper than 64"

CUT_OFF = "it was cut off at the length that a reply may have; say it in fewer words"


@each(
    "reply, why",
    [
        (replied(""), "it is empty"),
        (replied(" \n\t"), "it is empty"),
        (replied("```json\n```"), NO_JSON),
        (replied("I would give this a 4."), NO_JSON),
        (replied(f"Here it is: {json.dumps(GOOD)}"), NO_JSON),
        (replied(json.dumps(GOOD) * 2), NO_JSON),
        (replied(json.dumps(GOOD)[:-20]), NO_JSON),
        (replied(json.dumps(GOOD)[:-20], finish="length"), CUT_OFF),
        (replied("JudicialOpinion: " + json.dumps(GOOD)[:-20], finish="max_tokens"), CUT_OFF),
        (replied(f"```json\n{json.dumps(GOOD)}"), NO_JSON),
        (replied("[" * 100_000), NO_JSON),
        (replied("[" * 66 + "]" * 66), NO_JSON),
        (replied('{"score": NaN}'), NO_JSON),
        (replied('{"score": 1e999}'), NO_JSON),
        (replied('{"argument": "\\ud800"}'), NO_JSON),
        (replied("\ud800"), NO_JSON),
        (replied(json.dumps([GOOD])), "it is JSON, but not an object"),
        (replied("4"), "it is JSON, but not an object"),
        (replied("null"), "it is JSON, but not an object"),
        (replied("I will not judge people.", finish="refusal"),
         "it is a refusal; an opinion on this criterion is needed"),
        (replied(json.dumps(GOOD), finish="refusal"), "it is a refusal; an opinion on this criterion is needed"),
        (replied("", GOOD, GOOD), "there is more than one tool call in it"),
        (replied(json.dumps(GOOD), GOOD, name="search"), "it calls a tool other than JudicialOpinion"),
        (replied('JudicialOpinion: {"judge": '), NO_JSON),
    ],
)  # fmt: skip
def test_what_holds_no_object_is_none(reply: ModelReplied, why: str) -> None:
    assert objection(reply) == why


# --- what it says --------------------------------------------------------------------------------------------------

SCORE = "score has to be an integer from 1 to 5, written as a number"
NO_SCORES: list[object] = [0, 6, -1, 10**30, "4", "5", 4.0, 4.5, True, None, [4], {}]
KEYS = "cited_evidence has to hold keys of the evidence: at most 60, each of at most 200 characters"


@each(
    "changed, why",
    [
        ({"judge": "Prosecutor"}, "judge has to be TechLead"),
        ({"judge": "techlead"}, "judge has to be TechLead"),
        ({"judge": None}, "judge has to be TechLead"),
        ({"criterion_id": "safety"}, "criterion_id has to be the id of the criterion that you were given"),
        ({"criterion_id": "state "}, "criterion_id has to be the id of the criterion that you were given"),
        ({"criterion_id": ["state"]}, "criterion_id has to be the id of the criterion that you were given"),
        *[({"score": score}, SCORE) for score in NO_SCORES],
        ({"argument": ""}, "argument has to be a text, and may not be empty"),
        ({"argument": " \n"}, "argument has to be a text, and may not be empty"),
        ({"argument": ["because"]}, "argument has to be a text, and may not be empty"),
        ({"argument": "half \ud800"}, "argument holds characters that cannot be written"),
        ({"cited_evidence": "state#1"}, "cited_evidence has to be a list of texts"),
        ({"cited_evidence": ["state#1", 2]}, "cited_evidence has to be a list of texts"),
        ({"cited_evidence": {"state#1": True}}, "cited_evidence has to be a list of texts"),
        ({"cited_evidence": None}, "cited_evidence has to be a list of texts"),
        ({"cited_evidence": ["state#1"] * (CITATIONS_MAX + 1)}, KEYS),
        ({"cited_evidence": ["x" * (CITATION_CHARS_MAX + 1)]}, KEYS),
        ({"cited_evidence": ["\udfff"]}, KEYS),
        ({"confidence": 0.9}, "it has more fields than judge, criterion_id, score, argument, cited_evidence"),
    ],
)
def test_what_is_no_opinion_of_this_judge_on_this_criterion_is_none(changed: dict[str, Any], why: str) -> None:
    assert objection(replied("", {**GOOD, **changed})) == why


@each("name", list(GOOD))
def test_every_field_is_needed_and_what_lacks_is_named(name: str) -> None:
    without = {key: value for key, value in GOOD.items() if key != name}
    assert objection(replied(json.dumps(without))) == f"it lacks {name}"
    assert objection(replied("", {**without, f"{name}s": GOOD[name]})) == f"it lacks {name}"


def test_the_nearest_bounds_are_inside() -> None:
    edge = GOOD | {"cited_evidence": ["x" * CITATION_CHARS_MAX] * CITATIONS_MAX, "argument": "x" * ARGUMENT_CHARS_MAX}
    for score in (1, 5):
        assert read_opinion(BRIEF, replied("", {**edge, "score": score})) == JudicialOpinion(**{**edge, "score": score})
    assert read_opinion(BRIEF, replied("", {**GOOD, "cited_evidence": []})).cited_evidence == []


def test_a_long_argument_is_cut_and_says_so() -> None:
    argument = read_opinion(BRIEF, replied("", {**GOOD, "argument": "word " * 2_000})).argument
    assert argument.startswith("word word ")
    assert argument.endswith(" … (cut: 10000 characters in all)")
    assert len(argument) == ARGUMENT_CHARS_MAX


def test_an_objection_never_quotes_the_reply() -> None:
    for reply in (replied("", {**GOOD, "judge": "MARK"}), replied("", {**GOOD, "MARK": 1}), replied('{"MARK": '),
                  replied("", {**GOOD, "cited_evidence": ["MARK" * 99]}), replied("", GOOD, name="MARK")):  # fmt: skip
        assert "MARK" not in objection(reply)


# --- properties ----------------------------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_nearly = st.fixed_dictionaries(
    {
        "judge": st.sampled_from(["TechLead", "TechLead", "Defense", ""]) | _json,
        "criterion_id": st.sampled_from(["state", "state", "State"]) | _json,
        "score": st.integers(-1, 7) | st.sampled_from([True, 4.0, "4"]) | _json,
        "argument": st.text(max_size=8) | _json,
        "cited_evidence": st.lists(st.text(max_size=8) | st.integers(), max_size=3) | _json,
    }
)


@given(
    base=_nearly, of_base=st.sets(st.sampled_from(list(GOOD)), max_size=2),
    without=st.sampled_from(["", "", "", *GOOD]), more=st.sampled_from([{}, {}, {"note": 1}]), as_text=st.booleans(),
)  # fmt: skip
@settings(max_examples=examples(300), deadline=None)
def test_an_opinion_is_exactly_what_the_model_accepts_by_this_judge_on_this_criterion(
    base: dict[str, Any], of_base: set[str], without: str, more: dict[str, Any], as_text: bool
) -> None:
    value = {**GOOD, **{name: base[name] for name in of_base}, **more}
    value.pop(without, None)
    asked_for = value.get("judge") == "TechLead" and value.get("criterion_id") == "state"
    try:
        accepted = JudicialOpinion.model_validate(value)
        fits = asked_for and bool(accepted.argument.strip(" \t\r\n"))
    except ValidationError:
        fits = False
    reply = replied(json.dumps(value)) if as_text else replied("", value)
    if fits:
        assert read_opinion(BRIEF, reply) == accepted
    else:
        assert len(objection(reply)) <= REASON_CHARS_MAX


@given(content=st.text(max_size=60), finish=st.sampled_from(["stop", "length", "refusal", "tool_calls", ""]))
@settings(max_examples=examples(100), deadline=None)
def test_free_text_is_never_an_opinion(content: str, finish: str) -> None:
    assert objection(replied(content, finish=finish))


@given(
    score=st.integers(1, 5), argument=st.text(st.characters(codec="utf-8"), min_size=1, max_size=5_000),
    cited=st.lists(st.text(st.characters(codec="utf-8"), max_size=CITATION_CHARS_MAX), max_size=5),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_an_opinion_that_was_read_goes_through_the_log_unchanged(score: int, argument: str, cited: list[str]) -> None:
    given_value = GOOD | {"score": score, "argument": "x" + argument, "cited_evidence": cited}
    opinion = read_opinion(BRIEF, replied("", given_value))
    fact = decode("model.replied", encode(replied("", given_value)))
    assert read_opinion(BRIEF, fact) == opinion
    made = {"audit_id": "7d3f5a10-6f0c-4d0e-8c11-000000000001", "round": 1, "opinion": opinion.model_dump()}
    assert msgspec.to_builtins(msgspec.convert(made, AuditOpinionGiven).opinion) == opinion.model_dump()


@given(text=st.text(max_size=80), length=st.integers(40, 100))
def test_what_is_shown_is_never_longer_than_its_bound(text: str, length: int) -> None:
    assert len(shown(text, length)) <= length
    assert shown(text, len(text)) == text


# --- the shape -----------------------------------------------------------------------------------------------------


def _plain(schema: Any) -> Any:
    """A JSON Schema without the titles that pydantic makes of names."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "title"}
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


def test_the_shape_in_the_log_is_that_of_the_model_that_judges_are_bound_to() -> None:
    shape = answer_shape()
    assert shape.name == JudicialOpinion.__name__
    assert _plain(shape.schema) == _plain(JudicialOpinion.model_json_schema())
    assert shape.description == shape.schema["description"]
