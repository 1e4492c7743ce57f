"""The chief justice's table, row by row, and the audits that others got wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.audit.clerk import NodeFailed
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.justice.remedy import NOTHING, REMEDIES
from pmagent.actors.audit.justice.synthesis import disputed
from pmagent.contracts.audit import JUDGES, Judge
from pmagent.contracts.audit_events import REMEDIATION_CHARS_MAX
from pmagent.projections.audits.report import report_markdown
from tests.support.cases import each
from tests.support.verdicts import bench, case, item, judged, rules, ruling, said, scoped

FLAW = "security.os_system"


# --- 1: facts over opinions ------------------------------------------------------------------------------------------


@each(
    "cited", [[], ["one#3"], ["one#9"], ["one#03"], ["two#1"], ["state.typed"], ["one#3", "nonsense"]]
)
def test_an_opinion_that_rests_on_nothing_found_is_set_aside_and_still_printed(cited: list[str]) -> None:
    opinions = [said("Prosecutor", 3), said("Defense", 5, cited=cited), said("TechLead", 3)]
    result = ruling(opinions, item(), item("state.reducers", found=False))
    assert result.set_aside == ["Defense"]
    assert result.final_score == 3
    assert [one.judge for one in result.judge_opinions] == ["Prosecutor", "Defense", "TechLead"]
    assert result.unsupported == [key for key in cited if key != "one#3"]


def test_one_citation_of_something_found_is_enough() -> None:
    opinions = [said("Prosecutor", 3), said("Defense", 5, cited=["one#3", "nonsense", "one#2"]), said("TechLead", 4)]
    result = ruling(opinions, item(), item("state.reducers", found=False))
    assert result.set_aside == []
    assert result.unsupported == ["nonsense"]
    assert result.final_score == 4


def test_evidence_of_another_criterion_which_no_judge_of_this_one_was_shown_is_no_evidence() -> None:
    evidences = {"one": scoped(), "two": scoped()}
    opinions = [said("Prosecutor", 2, cited=["two#2"]), *bench(1, 3, 3)[1:], *bench(3, 3, 3, "two")]
    report = judged(case("one", "two"), evidences, opinions)
    assert report.criteria[0].set_aside == ["Prosecutor"]
    assert report.criteria[0].unsupported == ["two#2"]


def test_a_criterion_of_which_every_opinion_is_set_aside_is_not_judged() -> None:
    evidences = {"one": scoped(), "two": scoped()}
    judges: tuple[Judge, ...] = ("Prosecutor", "Defense", "TechLead")
    opinions = [*(said(judge, 5, cited=["made up"]) for judge in judges), *bench(4, 4, 4, "two")]
    report = judged(case("one", "two"), evidences, opinions)
    assert [one.dimension_id for one in report.not_judged] == ["one"]
    assert len(report.not_judged[0].judge_opinions) == 3
    assert "none rests on evidence that was found" in report.not_judged[0].reason
    assert report.overall_score == 4.0, "it counts nowhere"


def test_of_what_is_not_judged_both_rounds_and_the_dissent_are_told() -> None:
    evidences = {"one": scoped(), "two": scoped()}
    again = [said(judge, 3, cited=["made up"]) for judge in JUDGES]
    report = judged(case("one", "two"), evidences, [*bench(1, 5, 3), *again, *bench(4, 4, 4, "two")])
    (left,) = report.not_judged
    assert [one.score for one in left.first_round] == [1, 5, 3]
    assert [one.score for one in left.judge_opinions] == [3, 3, 3]
    assert left.dissent_summary is not None
    assert "Prosecutor 1, Defense 5, Tech Lead 3" in left.dissent_summary
    told = report_markdown(report)
    part = told[told.index("### One") : told.index("### Two")]
    assert "**First round:**" in part
    assert "**Dissent:**" in part


def test_an_audit_without_any_opinion_on_facts_has_no_report() -> None:
    opinions = [said(judge, 5, cited=[]) for judge in ("Prosecutor", "Defense", "TechLead")]
    with pytest.raises(NodeFailed, match="no opinion on any criterion rests on evidence") as caught:
        judged(case(), {"one": scoped()}, opinions)
    assert caught.value.code == "judge"


# --- 2: second round -------------------------------------------------------------------------------------------------


def test_scores_more_than_two_apart_are_disputed_and_two_apart_are_not() -> None:
    evidences = {"one": scoped(), "two": scoped()}
    opinions = [*bench(1, 3, 3), *bench(1, 4, 3, "two")]
    assert disputed(case("one", "two"), evidences, opinions) == ["two"]


def test_what_is_disputed_stays_so_when_the_second_round_agrees() -> None:
    evidences = {"one": scoped()}
    assert disputed(case(), evidences, [*bench(1, 5, 3), *bench(3, 3, 3)]) == ["one"]


def test_an_opinion_that_is_set_aside_disputes_nothing() -> None:
    opinions = [said("Prosecutor", 1, cited=["made up"]), said("Defense", 5), said("TechLead", 4)]
    assert disputed(case(), {"one": scoped()}, opinions) == []
    result = ruling(opinions)
    assert result.final_score == 5, "4.5, rounded half up"
    assert result.dissent_summary is not None, "all three are four apart"
    assert "Nobody was asked once more" in result.dissent_summary


def test_the_second_round_takes_the_place_of_the_first() -> None:
    result = ruling([*bench(1, 5, 5), *bench(2, 3, 2)])
    assert result.final_score == 2
    assert [one.score for one in result.first_round] == [1, 5, 5]
    assert [one.score for one in result.judge_opinions] == [2, 3, 2]
    assert rules(result)["variance_re_evaluation"] == (5.0, 2.0)


def test_the_second_round_is_held_to_the_facts_as_well() -> None:
    again = [said("Prosecutor", 1, cited=["nonsense"]), said("Defense", 4), said("TechLead", 4)]
    result = ruling([*bench(1, 5, 3), *again])
    assert result.set_aside == ["Prosecutor"]
    assert result.final_score == 4


def test_who_would_not_judge_once_more_ends_the_audit() -> None:
    opinions = [*bench(1, 5, 3), said("Prosecutor", 2), said("TechLead", 3)]
    with pytest.raises(NodeFailed, match="Defense did not judge the disputed one once more"):
        judged(case(), {"one": scoped()}, opinions)


def test_nobody_judges_twice_what_is_not_disputed() -> None:
    with pytest.raises(NodeFailed, match="Prosecutor judged one twice"):
        judged(case(), {"one": scoped()}, [*bench(3, 3, 3), said("Prosecutor", 1)])


# --- 3: median, weight, rounding -------------------------------------------------------------------------------------


@each("scores, final", [((1, 2, 3), 2), ((2, 2, 4), 2), ((5, 5, 5), 5), ((3, 5, 4), 4)])
def test_the_median_is_the_score(scores: tuple[int, int, int], final: int) -> None:
    assert ruling(bench(*scores)).final_score == final


@each("pair, final", [((2, 3), 3), ((3, 4), 4), ((1, 2), 2), ((2, 4), 3), ((4, 5), 5)])
def test_halves_are_rounded_up_never_to_the_even_number(pair: tuple[int, int], final: int) -> None:
    opinions = [said("Prosecutor", pair[0]), said("Defense", pair[1]), said("TechLead", 5, cited=[])]
    assert ruling(opinions).final_score == final


@each(
    "scores, final",
    [((3, 3, 5), 4), ((1, 3, 2), 2), ((4, 5, 3), 4), ((2, 4, 3), 3), ((2, 3, 4), 3), ((5, 4, 3), 4)],
)
def test_on_architecture_the_tech_lead_counts_double_in_a_mean(scores: tuple[int, int, int], final: int) -> None:
    result = ruling(bench(*scores), rubric=case(architecture=["one"]))
    assert result.final_score == final
    assert rules(result)["functionality_weight"][1] == (sum(scores) + scores[2]) / 4


def test_a_tech_lead_that_is_set_aside_has_no_weight() -> None:
    opinions = [said("Prosecutor", 2), said("Defense", 4), said("TechLead", 5, cited=[])]
    result = ruling(opinions, rubric=case(architecture=["one"]))
    assert result.final_score == 3


def test_the_weight_is_the_rubrics() -> None:
    heavy = case(architecture=["one"], tech_lead_weight=10)
    assert ruling(bench(3, 3, 5), rubric=heavy).final_score == 5


def test_elsewhere_the_weight_is_no_rule() -> None:
    assert "functionality_weight" not in rules(ruling(bench(3, 3, 5)))


# --- 4: security -----------------------------------------------------------------------------------------------------


def test_a_confirmed_flaw_caps_its_criterion_and_says_so() -> None:
    result = ruling(bench(5, 5, 5), item(FLAW, location="src/clone.py:12"))
    assert result.final_score == 3
    assert rules(result)["security_override"] == (5.0, 3.0)
    text = next(one.text for one in result.rules if one.rule == "security_override")
    assert "one#2" in text
    assert "src/clone.py:12" in text


@each("confidence, final", [(0.79, 5), (0.8, 3)])
def test_a_flaw_is_confirmed_from_a_confidence_on(confidence: float, final: int) -> None:
    assert ruling(bench(5, 5, 5), item(FLAW, confidence=confidence)).final_score == final


def test_a_text_that_names_a_flaw_is_none() -> None:
    """A rule that looks for words in evidence would cap what says "no os.system with user input"."""
    clean = item("tools.no_unsafe_calls", content="no os.system with user input", rationale="no unsanitized shell=True")
    assert ruling(bench(5, 5, 5), clean).final_score == 5
    absent = item(FLAW, found=False, confidence=0.95)
    assert ruling(bench(5, 5, 5), item(), absent).final_score == 5


def test_a_flaw_of_one_criterion_caps_no_other_and_the_overall_score_only_where_the_rubric_says_so() -> None:
    evidences = {"one": scoped(item(FLAW)), "two": scoped()}
    opinions = [*bench(5, 5, 5), *bench(5, 5, 5, "two")]
    report = judged(case("one", "two"), evidences, opinions)
    assert [one.final_score for one in report.criteria] == [3, 5]
    assert report.overall_score == 4.0
    capped = judged(case("one", "two", total_cap=True), evidences, opinions)
    assert capped.overall_score == 3.0
    assert "capped at 3 by a confirmed flaw" in capped.executive_summary


def test_a_score_below_the_cap_stays() -> None:
    assert ruling(bench(1, 2, 2), item(FLAW)).final_score == 2


# --- 5 and 6 ---------------------------------------------------------------------------------------------------------


@each("cap, final", [(0, 1), (9, 5)])
def test_scores_are_clamped(cap: int, final: int) -> None:
    assert ruling(bench(5, 5, 5), item(FLAW), rubric=case(security_cap=cap)).final_score == final


def test_dissent_says_who_gave_what_on_which_evidence_and_what_became_of_it() -> None:
    opinions = [
        said("Prosecutor", 1, cited=["one#3", "one#1"]), said("Defense", 5, cited=["one#2"]), said("TechLead", 3),
        said("Prosecutor", 2), said("Defense", 5, cited=["one#2"]), said("TechLead", 3),
    ]  # fmt: skip
    told = ruling(opinions, item(), item("state.reducers", found=False)).dissent_summary
    assert told is not None
    lines = told.split("\n")
    assert lines[0] == "The scores of the first round are 4 apart: Prosecutor 1, Defense 5, Tech Lead 3."
    assert lines[1].startswith("Prosecutor: 1 on one#3 (state.reducers, not found): “Prosecutor says 1")
    assert lines[2].startswith("Defense: 5 on one#2 (state.typed, found): “Defense says 5”")
    assert "Prosecutor goes from 1 to 2" in told
    assert "Defense stays at 5." in told


def test_without_dissent_there_is_no_summary_but_the_rule_says_why_two_differ() -> None:
    result = ruling(bench(2, 4, 3))
    assert result.dissent_summary is None
    assert "Prosecutor 2 on one#1 (repo.scope, found); Defense 4 on" in result.rules[-1].text


def test_the_spread_is_the_rubrics() -> None:
    assert disputed(case(spread=0), {"one": scoped()}, bench(3, 4, 4)) == ["one"]
    assert disputed(case(spread=4), {"one": scoped()}, bench(1, 5, 3)) == []


# --- the report as a whole -------------------------------------------------------------------------------------------


def test_the_overall_score_is_the_mean_rounded_half_up_to_a_tenth() -> None:
    names = tuple(f"c{number}" for number in range(20))
    scores = [3] * 19 + [4]  # 3.05
    opinions = [one for name, score in zip(names, scores, strict=True) for one in bench(score, score, score, name)]
    assert judged(case(*names), {name: scoped() for name in names}, opinions).overall_score == 3.1


def test_what_nobody_looked_at_is_not_judged_and_needs_no_opinion() -> None:
    unseen = scoped(item("images.inspected", found=False, confidence=0.0, rationale="not inspected: no vision model"))
    report = judged(case("one", "two"), {"one": unseen, "two": scoped()}, bench(4, 4, 4, "two"))
    assert [(one.dimension_id, one.reason) for one in report.not_judged] == [("one", "not inspected: no vision model")]
    assert report.overall_score == 4.0


def test_an_audit_in_which_nothing_can_be_judged_has_no_report() -> None:
    with pytest.raises(NodeFailed) as caught:
        judged(case(), {"one": scoped(item(found=False, confidence=0.0))}, [])
    assert caught.value.code == "evidence"


@each(
    "opinions, reason",
    [
        (bench(3, 3, 3)[:2], "there is no opinion of TechLead on one"),
        ([], "there is no opinion of Prosecutor, Defense, TechLead on one"),
        ([*bench(3, 3, 3), said("Defense", 3, "two")], "Defense judged two, which the rubric does not have"),
        (bench(3, 3, 3) * 3, "Prosecutor judged one more than twice"),
    ],
)
def test_no_opinion_is_made_up_or_passed_over(opinions: list[object], reason: str) -> None:
    with pytest.raises(NodeFailed) as caught:
        judged(case(), {"one": scoped()}, opinions)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.reason) == ("judge", reason)


def test_a_dimension_without_evidence_ends_the_audit() -> None:
    with pytest.raises(NodeFailed, match="there is no evidence for one") as caught:
        judged(case(), {}, bench(3, 3, 3))
    assert caught.value.code == "evidence"


def test_remediation_names_places_flaws_first() -> None:
    result = ruling(
        bench(2, 2, 2), item("graph.builder", location="src/graph.py:9"), item("graph.fan_in", found=False),
        item("project.swallowed", location="src/a.py:4"), item(FLAW, location="src/b.py:7"),
        item("images.inspected", found=False, confidence=0.0),
    )  # fmt: skip
    steps = result.remediation.split("\n")
    assert steps == [
        f"src/b.py:7: {GOALS[FLAW].advice} (one#5)",
        f"src/a.py:4: {GOALS['project.swallowed'].advice} (one#4)",
        f"near src/graph.py:9: {GOALS['graph.fan_in'].advice} (one#3)",
    ], "what nobody could look at asks for nothing"


def test_where_evidence_asks_for_nothing_the_tech_lead_says_what_is_wanting() -> None:
    assert ruling(bench(4, 4, 4)).remediation.split("\n") == [NOTHING, "Tech Lead: TechLead says 4"]
    assert ruling(bench(5, 5, 5)).remediation == NOTHING


def test_there_is_advice_for_every_goal_that_can_be_wanting() -> None:
    assert {goal.kind == "context" for goal in GOALS.values() if not goal.advice} == {True}


def test_the_plan_is_grouped_by_criterion_the_lowest_score_first() -> None:
    evidences = {
        "one": scoped(item("state.typed", found=False)), "two": scoped(item("state.models", found=False)),
        "three": scoped(),
    }  # fmt: skip
    opinions = [*bench(4, 4, 4), *bench(2, 2, 2, "two"), *bench(5, 5, 5, "three")]
    plan = judged(case("one", "two", "three"), evidences, opinions).remediation_plan
    assert [line for line in plan.split("\n") if not line.startswith("- ")] == ["Two (2/5)", "", "One (4/5)"]


def test_the_summary_says_verdict_extremes_disagreement_and_who_judged() -> None:
    evidences = {"one": scoped(), "two": scoped()}
    opinions = [*bench(1, 3, 2), *bench(5, 5, 5, "two")]
    summary = judged(case("one", "two"), evidences, opinions).executive_summary
    assert "meets most of the rubric: 3.5 of 5, the mean of 2 criteria" in summary
    assert "Strongest, with 5: Two. Weakest, with 2: One." in summary
    assert "- One: Prosecutor 1 on one#1 (repo.scope, found); Defense 3 on one#1 (repo.scope, found)" in summary
    assert "no model was asked" in summary


def test_remediation_of_a_report_names_the_passages() -> None:
    listed = item("report.hallucinated", content="page 2: src/a.py\npage 3: src/b.py", location="page 2")
    steps = ruling(bench(2, 2, 2), listed).remediation.split("\n")
    assert steps == [f"page 2: {GOALS['report.hallucinated'].advice}: page 2: src/a.py; page 3: src/b.py (one#2)"]


def test_remediation_is_bounded_and_says_what_it_leaves_out() -> None:
    missing = [item("repo.term", found=False).model_copy(update={"goal": f"repo.term: t: {n}"}) for n in range(40)]
    steps = ruling(bench(2, 2, 2), *missing).remediation.split("\n")
    assert len(steps) == REMEDIES + 1
    assert steps[-1] == f"{40 - REMEDIES} more: see the evidence that was not found."


def test_the_longest_remediation_fits_into_a_ruling() -> None:
    long: dict[str, Any] = {"location": "d/" * 2_000 + "x.py:3", "content": "y" * 2_000}
    missing = [item("report.hallucinated", **long) for _ in range(40)]
    assert len(ruling(bench(2, 2, 2), *missing).remediation) <= REMEDIATION_CHARS_MAX
