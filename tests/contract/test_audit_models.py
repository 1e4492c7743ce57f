"""The audit's models are the specification's, and what the log holds of them is the same, both ways."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_type_hints

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit import (
    JUDGES,
    AgentState,
    AppliedRule,
    AuditReport,
    AuditState,
    CriterionResult,
    Evidence,
    Judge,
    JudicialOpinion,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import (
    AuditCriterionRuled,
    AuditOpinionGiven,
    EvidenceItem,
    JudgeName,
    OpinionItem,
    RuleItem,
)
from tests.support.cases import each

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
EVIDENCE = st.builds(
    EvidenceItem, goal=TEXT, found=st.booleans(), content=st.none() | TEXT, location=TEXT, rationale=TEXT,
    confidence=st.floats(0, 1),
)
OPINIONS = st.builds(
    OpinionItem, judge=st.sampled_from(JUDGES), criterion_id=st.text("abc_", min_size=1, max_size=20),
    score=st.integers(1, 5), argument=TEXT, cited_evidence=st.lists(TEXT, max_size=5),
)
RULES = st.builds(
    RuleItem, rule=st.sampled_from(get_args(AppliedRule.model_fields["rule"].annotation)),
    before=st.none() | st.floats(1, 5), after=st.none() | st.floats(1, 5), text=TEXT,
)
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-2, 8) | st.floats(allow_nan=False) | TEXT | st.lists(TEXT, max_size=2)
)


# --- the specification's names -------------------------------------------------------------------------------------


@each("model, fields", [
    (Evidence, ["goal", "found", "content", "location", "rationale", "confidence"]),
    (JudicialOpinion, ["judge", "criterion_id", "score", "argument", "cited_evidence"]),
    (
        CriterionResult,
        ["dimension_id", "dimension_name", "final_score", "judge_opinions", "dissent_summary", "remediation"],
    ),
    (AuditReport, ["repo_url", "executive_summary", "overall_score", "criteria", "remediation_plan"]),
])
def test_models_begin_with_the_specifications_fields_and_ours_may_be_left_out(
    model: type[pydantic.BaseModel], fields: list[str]
) -> None:
    assert list(model.model_fields)[: len(fields)] == fields
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    assert required <= set(fields)
    assert set(fields) - required <= {"content", "dissent_summary"}


def test_the_state_is_the_specifications_with_its_reducers() -> None:
    hints = get_type_hints(AgentState, include_extras=True)
    assert list(hints) == ["repo_url", "pdf_path", "rubric_dimensions", "evidences", "opinions", "final_report"]
    reducers = {name: one.__metadata__ for name, one in hints.items() if hasattr(one, "__metadata__")}
    assert reducers == {"evidences": (operator.ior,), "opinions": (operator.add,)}
    assert set(hints) < set(get_type_hints(AuditState))


def test_a_model_that_is_bound_to_an_opinion_must_give_all_five_fields_and_no_other() -> None:
    schema = JudicialOpinion.model_json_schema()
    assert schema["required"] == ["judge", "criterion_id", "score", "argument", "cited_evidence"]
    assert schema["additionalProperties"] is False
    assert (schema["properties"]["score"]["minimum"], schema["properties"]["score"]["maximum"]) == (1, 5)
    assert schema["properties"]["judge"]["enum"] == ["Prosecutor", "Defense", "TechLead"]


@each("score", [0, 6, 3.5, 3.0, "3", None, True])
def test_an_opinions_score_is_a_whole_number_from_one_to_five_and_nothing_like_it(score: Any) -> None:
    opinion = {"judge": "Defense", "criterion_id": "a", "score": score, "argument": "b", "cited_evidence": []}
    with pytest.raises(pydantic.ValidationError):
        JudicialOpinion.model_validate(opinion)


def test_judges_are_the_same_three_everywhere() -> None:
    assert set(JUDGES) == set(get_args(Judge)) == set(get_args(JudgeName))
    assert len(JUDGES) == 3


# --- models and log, both ways -------------------------------------------------------------------------------------


@each("model, item", [(Evidence, EvidenceItem), (JudicialOpinion, OpinionItem), (AppliedRule, RuleItem)])
def test_what_the_log_holds_of_a_model_has_its_fields(
    model: type[pydantic.BaseModel], item: type[msgspec.Struct]
) -> None:
    assert list(model.model_fields) == [field.name for field in msgspec.structs.fields(item)]


@given(EVIDENCE)
def test_evidence_comes_back_from_the_log_as_it_went(item: EvidenceItem) -> None:
    model = Evidence.model_validate(msgspec.to_builtins(item))
    assert msgspec.convert(model.model_dump(), EvidenceItem) == item
    logged = msgspec.json.encode(msgspec.convert(model.model_dump(), EvidenceItem))
    assert Evidence.model_validate(msgspec.to_builtins(msgspec.json.decode(logged, type=EvidenceItem))) == model


@given(OPINIONS)
def test_an_opinion_comes_back_from_the_log_as_it_went(item: OpinionItem) -> None:
    model = JudicialOpinion.model_validate(msgspec.to_builtins(item))
    assert msgspec.convert(model.model_dump(), OpinionItem) == item
    event = AuditOpinionGiven(audit_id="2f6c4c1e-7c0b-4c89-9a52-5d1c6a0f3b71", round=1, opinion=item)
    back = msgspec.json.decode(msgspec.json.encode(event), type=AuditOpinionGiven)
    assert JudicialOpinion.model_validate(msgspec.to_builtins(back.opinion)) == model


@given(RULES)
def test_an_applied_rule_comes_back_from_the_log_as_it_went(item: RuleItem) -> None:
    model = AppliedRule.model_validate(msgspec.to_builtins(item))
    assert msgspec.convert(model.model_dump(), RuleItem) == item


@given(st.sampled_from(list(msgspec.structs.fields(OpinionItem))).map(lambda field: field.name), SCALARS)
def test_log_and_model_refuse_the_same_opinions(name: str, value: Any) -> None:
    """Any value takes a field's place. A float that is whole is a whole number to the log, which knows only JSON."""
    opinion = {"judge": "Defense", "criterion_id": "a", "score": 3, "argument": "b", "cited_evidence": ["a#1"]}
    opinion[name] = value
    accepted = [_accepts(opinion, OpinionItem), _accepts(opinion, JudicialOpinion)]
    if isinstance(value, float) and name == "score":
        assert not accepted[1]
    elif name == "criterion_id" and value == "":
        assert not accepted[0]  # no dimension of a rubric has such an id
    else:
        assert accepted[0] == accepted[1]


@given(st.sampled_from(["confidence", "found", "content", "goal"]), SCALARS)
def test_what_the_log_accepts_as_evidence_the_model_accepts(name: str, value: Any) -> None:
    evidence = {"goal": "a", "found": True, "content": None, "location": "b", "rationale": "c", "confidence": 0.5}
    evidence[name] = value
    if _accepts(evidence, EvidenceItem):
        assert _accepts(evidence, Evidence)


@each("confidence", [float("nan"), float("inf"), -0.1, 1.1])
def test_no_evidence_is_surer_than_sure_or_not_a_number(confidence: float) -> None:
    with pytest.raises(pydantic.ValidationError):
        Evidence(goal="a", found=True, location="b", rationale="c", confidence=confidence)


def _accepts(value: Any, kind: Any) -> bool:
    try:
        if issubclass(kind, pydantic.BaseModel):
            kind.model_validate(value)
        else:
            msgspec.convert(value, kind)
    except (pydantic.ValidationError, msgspec.ValidationError):
        return False
    return True


def test_a_ruling_holds_what_a_criterion_has_and_opinions_are_events_of_their_own() -> None:
    ruled = {field.name for field in msgspec.structs.fields(AuditCriterionRuled)}
    known = set(CriterionResult.model_fields) | set(UnjudgedCriterion.model_fields)
    assert known - ruled == {"judge_opinions", "first_round"}
    assert ruled - known == {"audit_id"}


# --- goals ---------------------------------------------------------------------------------------------------------


def test_a_goals_id_and_title_can_be_told_apart_and_fit_into_evidence() -> None:
    for goal in GOALS.values():
        assert goal.text == f"{goal.id}: {goal.title}"
        assert ":" not in goal.id
        assert len(goal.text) <= 200
        assert all(word == word.lower() and word.strip() == word for word in goal.words)


def test_only_flaws_are_of_security() -> None:
    assert {goal.kind for goal in GOALS.values() if goal.security} == {"flaw"}
