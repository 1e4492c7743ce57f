"""The offline judges: three looks at the same evidence, and what a second look changes."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.audit.clerk import Brief, NodeFailed
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.judges.rules.judge import opinion
from pmagent.contracts.audit import JUDGES, Evidence, Judge, JudicialOpinion
from pmagent.contracts.audit_events import ARGUMENT_CHARS_MAX, CITATIONS_MAX, EVIDENCE_MAX
from tests.support.cases import each

GRAPH = ("graph.builder", "graph.fan_out", "graph.fan_in", "graph.conditional")


def dimension(*goals: str, **changes: Any) -> dict[str, Any]:
    made = {
        "id": "kitchen",
        "name": "The kitchen",
        "target_artifact": "github_repo",
        "forensic_instruction": "Look.",
        "success_pattern": "All is there.",
        "failure_pattern": "Nothing is there.",
        "goals": list(goals),
    }
    return {key: value for key, value in (made | changes).items() if value is not None}


def item(goal: str, confidence: float = 1.0, *, found: bool = True, about: str = "", where: str = "") -> Evidence:
    return Evidence(
        goal=GOALS[goal].text + (f": {about}" if about else ""),
        found=found,
        content="whatever",
        location=where or ("src/kitchen.py:7" if found else "."),
        rationale="looked for in the syntax trees of 3 Python files",
        confidence=confidence,
    )


SCOPE = item("repo.scope", where="0123456789ab")


def judged(raw: dict[str, Any], *evidence: Evidence) -> dict[Judge, JudicialOpinion]:
    return {judge: opinion(Brief(judge=judge, round=1, dimension=raw, evidence=[SCOPE, *evidence])) for judge in JUDGES}


def again(
    raw: dict[str, Any], first: dict[Judge, JudicialOpinion], *evidence: Evidence
) -> dict[Judge, JudicialOpinion]:
    return {
        judge: opinion(
            Brief(
                judge=judge, round=2, dimension=raw, evidence=[SCOPE, *evidence], own=first[judge],
                others={other: first[other].cited_evidence for other in JUDGES if other != judge},
            )
        )
        for judge in JUDGES
    }  # fmt: skip


def scores(said: dict[Judge, JudicialOpinion]) -> tuple[int, ...]:
    """Prosecutor, Defense, Tech Lead."""
    return tuple(said[judge].score for judge in JUDGES)


# --- scores --------------------------------------------------------------------------------------------------------


def test_all_that_was_looked_for_is_a_five_and_nothing_of_it_a_one() -> None:
    raw = dimension(*GRAPH)
    assert scores(judged(raw, *(item(goal) for goal in GRAPH))) == (5, 5, 5)
    assert scores(judged(raw, *(item(goal, found=False) for goal in GRAPH))) == (1, 1, 1)


def test_what_is_there_by_existence_alone_counts_half() -> None:
    raw = dimension("agent.persistence", "agent.limits")
    kept = item("agent.limits")
    assert scores(judged(raw, item("agent.persistence"), kept)) == (5, 5, 5)
    assert judged(raw, item("agent.persistence", 0.5), kept)["TechLead"].score == 4
    assert judged(raw, item("agent.persistence", 0.5))["TechLead"].score == 3


def test_a_gap_that_is_not_sure_is_no_charge() -> None:
    raw = dimension("justice.dissent", "justice.rules")
    said = judged(raw, item("justice.rules"), item("justice.dissent", 0.5, found=False))
    assert "none: no flaw was found, and nothing is surely missing" in said["Prosecutor"].argument
    assert "Unfair to hold against it" in said["Defense"].argument
    assert "Next change: tell in the result who disagreed" in said["TechLead"].argument


def test_the_judges_rest_on_different_evidence() -> None:
    raw = dimension("graph.builder", "graph.run", "graph.dead_nodes")
    said = judged(raw, item("graph.builder"), item("graph.run"), item("graph.dead_nodes", where="src/graph.py:9"))
    assert said["Prosecutor"].cited_evidence == ["kitchen#4", "kitchen#1"]
    assert said["Defense"].cited_evidence == ["kitchen#2", "kitchen#3", "kitchen#1"]
    assert "at src/graph.py:9: these steps never run" in said["Prosecutor"].argument


def around(goal: str, about: str) -> Evidence:
    return item(goal, 0.8, about=about)


def test_a_judge_leans_to_how_the_program_at_large_is_kept_but_charges_flaws_in_full() -> None:
    raw = dimension("agent.persistence", "agent.limits", "project.swallowed")
    found = [item("agent.persistence"), item("agent.limits")]
    poor, good = around("repo.care", "10 of 100"), around("repo.care", "90 of 100")
    assert scores(judged(raw, *found)) == scores(judged(raw, *found, good)) == (5, 5, 5)
    middle = around("repo.care", "50 of 100")
    assert scores(judged(raw, *found, middle)) == (4, 4, 4)
    assert scores(judged(raw, *found, poor)) == (2, 2, 2), "no more than a point above the program at large"
    gaps = [item(one.goal.partition(":")[0], found=False) for one in found]
    assert scores(judged(raw, *gaps, good)) == (3, 3, 3)
    flaw = item("project.swallowed", 0.9)
    assert scores(judged(raw, *found, flaw, good)) == scores(judged(raw, *found, flaw)) == (3, 4, 3)
    said = judged(raw, *found, poor)
    assert all("kitchen#4" in one.cited_evidence for one in said.values())


def test_a_program_of_agents_without_the_shapes_that_are_known_is_judged_by_how_it_is_kept_at_large() -> None:
    unseen = [item("state.typed", 0.0, found=False), item("state.models", 0.0, found=False)]
    for raw in (dimension("state.typed", "state.models", "state.undeclared"), dimension("state.typed", "state.models")):
        assert scores(judged(raw, *unseen, around("repo.care", "29 of 100"))) == (2, 2, 2)
        assert scores(judged(raw, *unseen, around("repo.care", "79 of 100"))) == (4, 4, 4)


def test_each_judge_has_a_measure_of_evidence_that_the_others_do_not_cite() -> None:
    raw = dimension("agent.persistence", "agent.limits", "project.swallowed")
    seen = [item("agent.persistence", 0.5), item("agent.limits")]
    tested, built = around("repo.tested", "3 of 3"), around("repo.structure", "290 of 300")
    assert scores(judged(raw, *seen)) == (4, 4, 4)
    said = judged(raw, *seen, tested, built, item("project.swallowed", 0.9))
    assert scores(said) == (2, 4, 3)
    assert scores(judged(raw, *seen, tested)) == (4, 5, 4)
    assert scores(judged(raw, *seen, built)) == (4, 4, 5)
    cited = {judge: set(one.cited_evidence) for judge, one in said.items()}
    assert [{"kitchen#4", "kitchen#5"} & cited[judge] for judge in JUDGES] == [set(), {"kitchen#4"}, {"kitchen#5"}]
    assert "Tests import 100 % of the files" in said["Defense"].argument
    assert "at src/kitchen.py:7." in said["TechLead"].argument


def test_results_that_no_test_checks_are_no_five_for_whoever_asks_for_more_than_their_existence() -> None:
    raw = dimension("outcome.delivered", "outcome.unused")
    said = judged(raw, item("outcome.delivered"))
    assert scores(said) == (4, 5, 4)
    assert "and no more: no test imports the files in which it stands (kitchen#2)" in said["Prosecutor"].argument
    assert scores(judged(raw, item("outcome.delivered"), around("repo.tested", "1 of 2"))) == (5, 5, 5)
    assert scores(judged(raw, item("outcome.delivered"), around("repo.tested", "0 of 2"))) == (4, 5, 4)
    assert scores(judged(raw, item("outcome.delivered", found=False))) == (1, 1, 1)


def test_half_of_it_is_a_three() -> None:
    half = [item(goal, found=place < 2) for place, goal in enumerate(GRAPH)]
    assert scores(judged(dimension(*GRAPH), *half)) == (3, 3, 3)


def test_a_thing_that_cannot_be_pointed_at_weighs_less_for_the_tech_lead() -> None:
    raw = dimension("project.tests", "project.ci", "project.lock")
    gap = item("project.lock", found=False)
    placed = judged(raw, item("project.tests", where="tests/a.py:3"), item("project.ci", where=".ci.yml:1"), gap)
    vague = judged(raw, item("project.tests", where="tests"), item("project.ci", where=".ci.yml"), gap)
    assert (placed["TechLead"].score, vague["TechLead"].score) == (4, 3)
    assert scores(vague)[:2] == scores(placed)[:2]


def test_what_the_success_pattern_names_weighs_more_than_what_the_instruction_names() -> None:
    raw = dimension(
        goals=None, forensic_instruction="Look for a fan-out and a fan-in.", success_pattern="There is a fan-out."
    )
    named = judged(raw, item("graph.fan_out"), item("graph.fan_in", found=False))
    other = judged(raw, item("graph.fan_out", found=False), item("graph.fan_in"))
    assert all(named[judge].score >= other[judge].score for judge in JUDGES)
    assert named["TechLead"].score > other["TechLead"].score


def test_many_details_of_one_thing_do_not_outweigh_another_thing() -> None:
    raw = dimension(
        *GRAPH, "graph.two_stages", "graph.error_route", "agent.limits", "agent.persistence", "agent.approval"
    )
    no_graph = [item(goal, found=False) for goal in (*GRAPH, "graph.two_stages", "graph.error_route")]
    agents = [item(goal) for goal in ("agent.limits", "agent.persistence", "agent.approval")]
    assert judged(raw, *no_graph, *agents)["TechLead"].score == 3


def test_an_equivalent_of_a_name_that_the_rubric_quotes_does_nearly_as_well() -> None:
    raw = dimension(
        goals=None, forensic_instruction="Look for `State`.", success_pattern="A `State` that is a TypedDict."
    )
    said = judged(raw, item("state.typed"), item("repo.term", found=False, about="State"))
    assert min(scores(said)) >= 3
    only_looked_at = dimension(goals=None, forensic_instruction="Look into `state.py`.", success_pattern="A TypedDict.")
    said = judged(only_looked_at, item("state.typed"), item("repo.term", found=False, about="state.py"))
    assert scores(said) == (5, 5, 5)


def test_where_only_names_are_looked_for_they_count() -> None:
    raw = dimension(goals=None, forensic_instruction="Look for `soup.py` and `bread.py`.")
    assert scores(judged(raw, item("repo.term", about="soup.py"), item("repo.term", about="bread.py"))) == (5, 5, 5)
    missing = [item("repo.term", found=False, about=name) for name in ("soup.py", "bread.py")]
    assert scores(judged(raw, *missing)) == (1, 1, 1)
    assert scores(judged(raw, *missing, item("security.shell"))) == (1, 1, 1)


def test_what_nobody_could_look_at_counts_neither_way() -> None:
    raw = dimension(*GRAPH)
    seen = [item("graph.builder"), item("graph.fan_out", found=False)]
    unseen = [item("graph.fan_in", 0.0, found=False), item("graph.conditional", 0.0)]
    assert scores(judged(raw, *seen, *unseen)) == scores(judged(raw, *seen))


def test_a_flaw_costs_the_defense_least_and_the_prosecutor_most() -> None:
    raw = dimension("project.tests", "project.swallowed", "project.untested")
    flaws = [item("project.swallowed"), item("project.untested", 0.8)]
    assert scores(judged(raw, item("project.tests"), *flaws)) == (1, 4, 2)


def test_a_flaw_found_again_and_again_costs_at_most_twice_as_much() -> None:
    raw = dimension("project.tests", "project.swallowed")
    many = [item("project.swallowed", where=f"a.py:{line}") for line in range(1, 40)]
    assert scores(judged(raw, item("project.tests"), *many)) == (1, 4, 1)


def test_a_dimension_that_asks_for_flaws_alone_is_a_five_where_none_was_found() -> None:
    raw = dimension("security.shell", "security.secret")
    assert scores(judged(raw)) == (5, 5, 5)
    assert scores(judged(raw, item("security.shell"))) == (2, 4, 3)


def test_what_is_met_in_part_counts_by_its_part() -> None:
    raw = dimension("report.supported", "report.verified", target_artifact="pdf_report")
    given = [scores(judged(raw, item("report.supported", about=f"{part} of 8"))) for part in (2, 4, 6, 8)]
    assert given == [(2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5)]
    both = judged(raw, item("report.supported", about="8 of 8"), item("report.verified", about="0 of 8", found=False))
    assert scores(both) == (3, 3, 3), "paths and statements weigh as much as they are many"


# --- limits --------------------------------------------------------------------------------------------------------


@each(
    "flaw, asset, failure, limits",
    [
        ("graph.linear", "graph.builder", "Purely linear flow.", (1, None, None)),
        ("output.freeform", "output.structured", "Parses freeform text.", (2, None, None)),
        ("judges.collusion", "judges.personas", "Judges share 90% of their prompts.", (2, None, None)),
        ("state.plain_dicts", "state.models", "Plain dicts.", (3, None, 3)),
        ("report.scanty", "report.supported", "Whatever.", (1, 1, 1)),
        ("report.foreign", "report.supported", "Whatever.", (1, 2, 1)),
        ("security.shell", "tools.time_limits", "Whatever.", (2, None, 3)),
    ],
)
def test_a_flaw_that_the_failure_pattern_names_limits_some_judges(
    flaw: str, asset: str, failure: str, limits: tuple[int | None, ...]
) -> None:
    raw = dimension(goals=None, failure_pattern=failure, success_pattern=GOALS[asset].words[0])
    if flaw.startswith("report."):
        raw["target_artifact"] = "pdf_report"
    said = judged(raw, item(asset), item(flaw))
    for judge, limit in zip(JUDGES, limits, strict=True):
        assert said[judge].score <= (limit or 5)
        if limit is not None and f"and no more beside {GOALS[flaw].title}" not in said[judge].argument:
            assert said[judge].score < limit


def test_a_flow_that_is_linear_limits_nobody_where_the_rubric_does_not_mind() -> None:
    raw = dimension(goals=None, forensic_instruction="Is it linear?", success_pattern="A pipeline.")
    assert min(scores(judged(raw, item("graph.builder"), item("graph.linear")))) > 1


def test_an_unsure_flaw_limits_nobody() -> None:
    raw = dimension("graph.builder", "graph.linear")
    assert judged(raw, item("graph.builder"), item("graph.linear", 0.5))["Prosecutor"].score > 1


def test_a_picture_that_a_model_described_is_no_more_than_competent() -> None:
    raw = dimension("images.present", "images.inspected", target_artifact="pdf_images")
    said = judged(raw, item("images.present"), item("images.inspected", 0.7, where="page 2"))
    assert scores(said) == (3, 3, 3)
    assert "do not read descriptions" in said["Defense"].argument


# --- opinions ------------------------------------------------------------------------------------------------------


def test_nothing_to_judge_by_is_no_opinion() -> None:
    for raw in (dimension("graph.builder"), dimension(goals=None)):
        with pytest.raises(NodeFailed) as caught:
            judged(raw, item("graph.builder", 0.0, found=False), item("repo.unparsed"))
        assert caught.value.code == "evidence"


def test_an_argument_is_labelled_and_names_every_key_that_it_cites() -> None:
    half = [item(goal, found=place < 2) for place, goal in enumerate(GRAPH)]
    for judge, said in judged(dimension(*GRAPH), *half).items():
        assert said.judge == judge
        assert said.criterion_id == "kitchen"
        assert said.argument.startswith("[rules] ")
        assert "kitchen#1" in said.cited_evidence  # what was examined
        assert all(key in said.argument for key in said.cited_evidence)


def test_judges_cite_their_own_side() -> None:
    half = [item(goal, found=place < 2) for place, goal in enumerate(GRAPH)]
    said = judged(dimension(*GRAPH), *half)
    assert said["Prosecutor"].cited_evidence == ["kitchen#4", "kitchen#5", "kitchen#1"]
    assert said["Defense"].cited_evidence == ["kitchen#2", "kitchen#3", "kitchen#1"]
    assert said["TechLead"].cited_evidence == ["kitchen#4", "kitchen#5", "kitchen#2", "kitchen#3", "kitchen#1"]


def test_that_no_flaw_was_found_rests_on_which_were_looked_for() -> None:
    looked_for = item("repo.flaws", where="0123456789ab")
    for said in judged(dimension("security.shell"), looked_for).values():
        assert said.score == 5
        assert said.cited_evidence == ["kitchen#1", "kitchen#2"]


def test_a_great_deal_of_evidence_with_long_names_fits_into_an_opinion() -> None:
    raw = dimension(goals=None, id="k" * 100, success_pattern=" ".join(f"`{'t' * 70}{n}`" for n in range(40)))
    many = [item("repo.term", found=bool(n % 2), about="t" * 70 + str(n % 40)) for n in range(EVIDENCE_MAX - 1)]
    first = judged(raw, *many)
    for said in (*first.values(), *again(raw, first, *many).values()):
        assert len(said.argument) <= ARGUMENT_CHARS_MAX
        assert len(said.cited_evidence) <= CITATIONS_MAX


# --- the second round ----------------------------------------------------------------------------------------------


def test_in_the_second_round_judges_come_closer_and_nobody_passes_another() -> None:
    raw = dimension("graph.builder", "graph.fan_out", "judges.collusion", "state.undeclared")
    mixed = [item("graph.builder"), item("graph.fan_out"), item("judges.collusion"), item("state.undeclared")]
    first = judged(raw, *mixed)
    assert scores(first) == (1, 4, 1)
    second = again(raw, first, *mixed)
    assert scores(second) == (1, 3, 1)
    assert "it moves from 4 to 3" in second["Defense"].argument
    assert set(first["Prosecutor"].cited_evidence) < set(second["Prosecutor"].cited_evidence)


def test_a_judge_who_is_shown_nothing_new_stays() -> None:
    raw = dimension("graph.builder", "graph.fan_in")
    seen = [item("graph.builder"), item("graph.fan_in", found=False)]
    own = JudicialOpinion(
        judge="Prosecutor", criterion_id="kitchen", score=1, argument="no", cited_evidence=["kitchen#2", "kitchen#3"]
    )
    for others in ({}, {"Defense": ["kitchen#2"]}, {"Defense": ["kitchen#9", "hearsay"]}):
        brief = Brief(judge="Prosecutor", round=2, dimension=raw, evidence=[SCOPE, *seen], own=own, others=others)
        said = opinion(brief)
        assert said.score == 1
        assert "it stays at 1" in said.argument


@each(
    "judge, score, knew, shown",
    [
        ("Prosecutor", 1, ["kitchen#2", "kitchen#3"], "kitchen#4"),
        ("Defense", 5, ["kitchen#4"], "kitchen#2"),
    ],
)
def test_a_judge_moves_only_towards_what_the_others_cited(
    judge: Judge, score: int, knew: list[str], shown: str
) -> None:
    """Too hard or too mild for what it knew itself; but the Prosecutor is shown a gap, the Defense what is there."""
    raw = dimension("graph.builder", "graph.fan_out", "graph.fan_in")
    seen = [SCOPE, item("graph.builder"), item("graph.fan_out"), item("graph.fan_in", found=False)]
    own = JudicialOpinion(judge=judge, criterion_id="kitchen", score=score, argument="so", cited_evidence=knew)
    said = opinion(Brief(judge=judge, round=2, dimension=raw, evidence=seen, own=own, others={"TechLead": [shown]}))
    assert said.score == score


def test_a_thing_that_is_hardly_there_does_not_make_up_for_one_that_is_surely_missing() -> None:
    raw = dimension("report.supported", target_artifact="pdf_report")
    surely = judged(raw, item("report.supported"))
    hardly = judged(raw, item("report.supported", 0.2), item("report.supported", 0.9, found=False))
    assert scores(surely) == (5, 5, 5)
    assert max(scores(hardly)) <= 3
