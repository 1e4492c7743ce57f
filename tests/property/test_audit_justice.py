"""Each rule of the chief justice, for whatever judges say; and all of them against another way of computing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pmagent.actors.audit.clerk import NodeFailed
from pmagent.actors.audit.goals import SECURITY, goal_id
from pmagent.actors.audit.justice.synthesis import disputed
from pmagent.actors.audit.progress import as_item, as_opinion_item
from pmagent.actors.audit.rubric import Rubric
from pmagent.contracts.audit import (
    JUDGES,
    AuditReport,
    CriterionResult,
    Evidence,
    JudicialOpinion,
    UnjudgedCriterion,
)
from pmagent.contracts.audit_events import AuditConcluded, AuditCriterionRuled, RuleItem
from tests.support.audits import AUDIT
from tests.support.effort import examples
from tests.support.hostile import CORPUS
from tests.support.verdicts import case, item, judged, said, scoped

NAMES = ("one", "two", "three")
TEXTS = st.sampled_from(
    [
        "plain", "no os.system with user input", "Security Negligence! os.system(x) unsanitized", "",
        *(text[:200] for text in CORPUS.values()),
    ]
)  # fmt: skip


class Trial(NamedTuple):
    """The material of an audit's synthesis."""

    rubric: Rubric
    evidences: dict[str, list[Evidence]]
    opinions: list[JudicialOpinion]


@st.composite
def items(draw: st.DrawFn) -> Evidence:
    goal = draw(st.sampled_from(["state.typed", "tools.no_unsafe_calls", "graph.linear", *sorted(SECURITY)[:2]]))
    return item(
        goal, found=draw(st.booleans()), confidence=draw(st.sampled_from([0.0, 0.5, 0.79, 0.8, 1.0])),
        content=draw(TEXTS), rationale=draw(TEXTS),
    )  # fmt: skip


@st.composite
def opinions(draw: st.DrawFn, criterion: str) -> list[JudicialOpinion]:
    cited = st.lists(st.sampled_from([f"{criterion}#{n}" for n in range(1, 5)] + ["two#1", "made up", ""]), max_size=4)
    return [
        said(judge, draw(st.integers(1, 5)), criterion, draw(st.one_of(st.just([f"{criterion}#1"]), cited)))
        for judge in JUDGES
    ]


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    names = NAMES[: draw(st.integers(1, 3))]
    rubric = case(
        *names, architecture=[name for name in names if draw(st.booleans())], spread=draw(st.integers(0, 4)),
        security_cap=draw(st.integers(1, 5)), tech_lead_weight=draw(st.integers(1, 10)), total_cap=draw(st.booleans()),
    )  # fmt: skip
    evidences = {name: scoped(*draw(st.lists(items(), min_size=1, max_size=3))) for name in names}
    first = [one for name in names for one in draw(opinions(name))]
    judgeable = [name for name in names if any(one.confidence for one in evidences[name][1:])]
    first = [one for one in first if one.criterion_id in judgeable]
    again = disputed(rubric, evidences, first)
    return Trial(rubric, evidences, [*first, *(one for name in again for one in draw(opinions(name)))])


def report_of(trial: Trial) -> AuditReport:
    try:
        return judged(*trial)
    except NodeFailed as failed:
        assume(failed.code not in ("evidence", "judge"))  # nothing to judge, or nothing rests on facts
        raise


def facts(trial: Trial, said: Sequence[JudicialOpinion]) -> list[JudicialOpinion]:
    """Those that cite something that was found: keys written out by hand."""
    found = {
        name: {f"{name}#{at + 1}" for at in range(len(listed)) if listed[at].found}
        for name, listed in trial.evidences.items()
    }
    return [one for one in said if set(one.cited_evidence) & found[one.criterion_id]]


def rounds(trial: Trial, name: str) -> tuple[list[JudicialOpinion], list[JudicialOpinion]]:
    given = [one for one in trial.opinions if one.criterion_id == name]
    return given[:3], given[3:]


def expected(trial: Trial, name: str) -> int | None:
    """The score by the words of docs/design.md §15.9, in decimal numbers."""
    first, second = rounds(trial, name)
    counting = facts(trial, second or first)
    if not counting:
        return None
    number = next(at for at, one in enumerate(trial.rubric.dimensions) if one.id == name)
    parameters = trial.rubric.parameters
    if trial.rubric.dimensions[number].architecture:
        scores = [
            one.score for one in counting for _ in range(parameters.tech_lead_weight if one.judge == "TechLead" else 1)
        ]
        base = Decimal(sum(scores)) / Decimal(len(scores))
    else:
        base = Decimal(str(statistics.median([one.score for one in counting])))
    score = int(base.quantize(Decimal(1), rounding=ROUND_HALF_UP))
    if flaws(trial, name):
        score = min(score, parameters.security_cap)
    return max(1, min(5, score))


def flaws(trial: Trial, name: str) -> list[Evidence]:
    listed = trial.evidences[name]
    return [one for one in listed if one.found and one.confidence >= 0.8 and goal_id(one.goal) in SECURITY]


@given(trials())
@settings(max_examples=examples(200), deadline=None)
def test_every_score_is_what_the_ruling_says(trial: Trial) -> None:
    report = report_of(trial)
    for result in report.criteria:
        assert result.final_score == expected(trial, result.dimension_id)
    for left in report.not_judged:
        assert not trial.opinions or expected(trial, left.dimension_id) is None
    named = [*(one.dimension_id for one in report.criteria), *(one.dimension_id for one in report.not_judged)]
    assert sorted(named, key=NAMES.index) == [one.id for one in trial.rubric.dimensions]


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_the_overall_score_follows_from_the_criteria(trial: Trial) -> None:
    report = report_of(trial)
    scores = [one.final_score for one in report.criteria]
    mean = (Decimal(sum(scores)) / len(scores)).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
    if trial.rubric.parameters.total_cap and any(flaws(trial, name) for name in trial.evidences):
        mean = min(mean, Decimal(trial.rubric.parameters.security_cap))
    assert report.overall_score == float(mean)


@given(trials(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50), deadline=None)
def test_the_order_of_judges_and_criteria_does_not_matter(trial: Trial, chance: Any) -> None:
    """Only of one judge on one criterion, the first opinion is that of the first round."""
    keyed = [(one.judge, one.criterion_id) for one in trial.opinions]
    shuffled = list(keyed)
    chance.shuffle(shuffled)
    left = list(trial.opinions)
    mixed = [left.pop([(one.judge, one.criterion_id) for one in left].index(key)) for key in shuffled]
    assert report_of(trial._replace(opinions=mixed)) == report_of(trial)


@given(trials(), st.data())
@settings(max_examples=examples(50), deadline=None)
def test_what_is_set_aside_never_changes_a_score(trial: Trial, data: st.DataObject) -> None:
    report = report_of(trial)
    changed = [
        one if facts(trial, [one]) else one.model_copy(update={"score": data.draw(st.integers(1, 5))})
        for one in trial.opinions
    ]
    after = judged(trial.rubric, trial.evidences, changed)
    assert [one.final_score for one in after.criteria] == [one.final_score for one in report.criteria]
    assert after.overall_score == report.overall_score


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_before_any_cap_a_score_lies_between_those_that_count(trial: Trial) -> None:
    for result in report_of(trial).criteria:
        counting = [one.score for one in result.judge_opinions if one.judge not in result.set_aside]
        rounded = next(one.after for one in result.rules if one.rule == "median")
        assert rounded is not None
        assert min(counting) <= rounded <= max(counting)


@given(trials(), st.lists(TEXTS, min_size=30, max_size=30))
@settings(max_examples=examples(50), deadline=None)
def test_only_what_was_found_caps_never_what_a_text_says(trial: Trial, texts: list[str]) -> None:
    report = report_of(trial)
    for result in report.criteria:
        rule = next(one for one in result.rules if one.rule == "security_override")
        if rule.before != rule.after:
            assert flaws(trial, result.dimension_id)
    supply = iter(texts)
    evidences = {
        name: [one.model_copy(update={"content": next(supply), "rationale": next(supply)}) for one in listed]
        for name, listed in trial.evidences.items()
    }
    opinions = [one.model_copy(update={"argument": "no os.system"}) for one in trial.opinions]
    after = judged(trial.rubric, evidences, opinions)
    assert [one.final_score for one in after.criteria] == [one.final_score for one in report.criteria]


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_a_second_round_is_asked_for_where_scores_on_facts_are_too_far_apart(trial: Trial) -> None:
    first = [one for name in trial.evidences for one in rounds(trial, name)[0]]
    wanted = []
    for name in trial.evidences:
        scores = [one.score for one in facts(trial, rounds(trial, name)[0])]
        if scores and max(scores) - min(scores) > trial.rubric.parameters.spread:
            wanted.append(name)
    assert disputed(trial.rubric, trial.evidences, first) == wanted
    assert disputed(trial.rubric, trial.evidences, trial.opinions) == wanted


@given(trials(), st.data())
@settings(max_examples=examples(50), deadline=None)
def test_the_second_round_alone_decides_where_there_is_one(trial: Trial, data: st.DataObject) -> None:
    """Other first scores that are disputed just the same lead to the same result."""
    report = report_of(trial)
    changed = []
    for name in trial.evidences:
        first, second = rounds(trial, name)
        if second:
            scores = data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=3))
            first = [one.model_copy(update={"score": score}) for one, score in zip(first, scores, strict=True)]
        changed += [*first, *second]
    again = trial._replace(opinions=changed)
    assume(disputed(*again) == disputed(*trial))
    after = report_of(again)
    assert [one.final_score for one in after.criteria] == [one.final_score for one in report.criteria]


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_each_rule_goes_on_from_where_the_last_one_left_off(trial: Trial) -> None:
    for result in report_of(trial).criteria:
        for one, following in zip(result.rules, result.rules[1:], strict=False):
            assert one.after == following.before, result.rules
        assert result.rules[-1].after == result.final_score


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_dissent_is_told_where_first_scores_of_all_three_are_too_far_apart(trial: Trial) -> None:
    for result in report_of(trial).criteria:
        scores = [one.score for one in rounds(trial, result.dimension_id)[0]]
        assert (result.dissent_summary is not None) == (max(scores) - min(scores) > trial.rubric.parameters.spread)


@given(trials())
@settings(max_examples=examples(50), deadline=None)
def test_every_citation_is_evidence_or_is_listed_as_none(trial: Trial) -> None:
    report = report_of(trial)
    results: list[CriterionResult | UnjudgedCriterion] = [*report.criteria, *report.not_judged]
    for result in results:
        given = [one for one in trial.opinions if one.criterion_id == result.dimension_id]
        cited = {key for one in given for key in one.cited_evidence}
        own = len(report.evidence[result.dimension_id])
        assert set(result.unsupported) == cited - {f"{result.dimension_id}#{n}" for n in range(1, own + 1)}


@given(trials(), st.sampled_from(list(CORPUS.values())))
@settings(max_examples=examples(60), deadline=None)
def test_the_log_takes_every_ruling_however_hostile_the_texts(trial: Trial, text: str) -> None:
    evidences = {
        name: [one.model_copy(update={"content": text[:2_000], "location": text[:4_000]}) for one in listed]
        for name, listed in trial.evidences.items()
    }
    opinions = [one.model_copy(update={"argument": text[:4_000]}) for one in trial.opinions]
    report = report_of(Trial(trial.rubric, evidences, opinions))
    for result in report.criteria:
        ruled = AuditCriterionRuled(
            audit_id=AUDIT, dimension_id=result.dimension_id, dimension_name=result.dimension_name,
            final_score=result.final_score, dissent_summary=result.dissent_summary, remediation=result.remediation,
            set_aside=list(result.set_aside), unsupported=result.unsupported,
            rules=[RuleItem(rule=one.rule, before=one.before, after=one.after, text=one.text) for one in result.rules],
        )  # fmt: skip
        assert msgspec.json.decode(msgspec.json.encode(ruled), type=AuditCriterionRuled) == ruled
    concluded = AuditConcluded(
        request=1, audit_id=AUDIT, overall_score=report.overall_score, executive_summary=report.executive_summary,
        remediation_plan=report.remediation_plan,
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(concluded), type=AuditConcluded) == concluded
    assert all(as_item(one) for listed in report.evidence.values() for one in listed)
    assert all(as_opinion_item(one) for result in report.criteria for one in result.judge_opinions)
