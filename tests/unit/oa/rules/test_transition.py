"""PhaseTransitionValidator: each criterion that is not met is named, and what cannot be verified is not met."""

from __future__ import annotations

from typing import Any

from pmagent.actors.oa.reasoning.rules.transition import order, same, skipped
from pmagent.contracts.reasoning import CRITERIA_MAX
from tests.support.cases import each
from tests.support.rules_runs import OLD, RulesRun, summary

TOOLS = ("oa.kernel_status", "oa.ssot_surface", "oa.reality_check")


def test_the_next_phase_is_ready_and_it_is_told_that_no_criteria_are_known(transition: Any) -> None:
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert not said.degraded
    assert ["lists criteria for phase 7" in d.message for d in said.diagnostics] == [True]
    assert said.rationale.endswith("reality is green, and no criterion is stated that could be missing")
    transition.context = {"phase_done_checklist": {"docs": True}}
    assert transition.ask().diagnostics == []
    assert transition.ask().rationale.endswith("the one criterion that is stated is met")
    transition.context = {"phase_done_checklist": {"docs": True, "tests": True}}
    assert transition.ask().rationale.endswith("all 2 stated criteria are met")


@each(
    "goal, context",
    [
        ("Go from phase 7 to phase 8", {}), ("Validate the transition of Phase 7 into 8", {}), ("7 -> 8", {}),
        ("Begin phase 8", {}), ("?", {"proposed_phase": 8}), ("?", {"from_phase": "Phase 7", "to_phase": "phase 8"}),
        ("phase 1 to 2", {"current_phase": 7, "proposed_phase": "8"}), ("Go from phase 7 to phase 8.", {}),
        ("May phase 8 start now that phase 7 is done?", {}), ("Phase 8?", {}), ("Advance from 7 to 8", {}),
    ],
)  # fmt: skip
def test_the_phases_come_from_the_context_else_the_goal(transition: Any, goal: str, context: dict[str, Any]) -> None:
    transition.goal, transition.context = goal, context
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert said.rationale.startswith("phase 7 to 8, ")


def evidence(*results: Any) -> dict[str, Any]:
    return {"context": {"evidence": [{"source": "preview", "result": result} for result in results]}}


def checklist(given: Any) -> dict[str, Any]:
    return {"context": {"phase_done_checklist": given}}


SKIPPING = [("phase 7 to phase 9", "it would skip 8"), ("phase 7 to phase 40", "it would skip 8, 9, 10 and 29 more")]
RED = {"reality_green": True, "failed_checks": ["Backup System"]}
NOBODY = {"oa.kernel_status": {"mode": "NORMAL"}, "oa.ssot_surface": {"version": 17}}
MISSING: dict[str, list[tuple[dict[str, Any], str]]] = {
    # statement: runs, each with words of the criteria that it misses
    "an order of phases that is none": [
        *(({"goal": goal}, words) for goal, words in SKIPPING),
        ({"goal": "phase 7 to phase 7"}, "there is no transition to make"),
        ({"goal": "phase 7 to phase 6"}, "a rollback needs a plan"),
        ({"goal": "phase 7 to phase 6", "context": {"rollback_plan": "none"}}, "a rollback needs a plan"),
        ({"goal": "phase 6 to phase 7"}, "the kernel is in phase 7, not in 6"),
        ({"goal": "go on"}, "the proposed phase is not named"),
        ({"goal": "phase 8 or phase 9?"}, "the proposed phase is not named"),
        ({"context": {"proposed_phase": "launch"}}, "cannot be told"),
        ({"goal": "?", "context": {"proposed_phase": "8"}, "bootstrap": {}, "ssot": {}, "tools": NOBODY},
         "the current phase is not known"),
    ],
    "a checklist counts item by item": [
        (checklist({"docs": True, "tests green": False}), "tests green is not met"),
        (checklist({"docs": "yes"}), "docs is yes, neither true nor false"),
        (checklist(["docs"]), "not a map of criteria"),
    ],
    "open items are missing one by one": [
        ({"context": {"blocking_items": ["finish the index"]}}, "finish the index"),
        (evidence({"blocking_items": ["sign it", "seal it"]}), "seal it"), (evidence({"ok": False}), "ok is false"),
    ],
    "SSOT's entry of the phase counts": [
        ({"ssot": {"current_phase": "7", "phases": {"7": entry, "6": {"status": "open"}}}}, words)
        for entry, words in (
            ({"status": "in_progress"}, "phases.7.status is in_progress"), ({"status": 3}, "phases.7.status is 3"),
            ({"blockers": ["one"]}, "one"))
    ],
    "a tool that did not answer leaves it unverified": [
        *(({"tools": {tool: None}}, f"not verifiable: {tool} failed") for tool in TOOLS),
        *(({"allowed": [one for one in TOOLS if one != tool]}, f"not verifiable: {tool} is not in tools_allowed")
          for tool in TOOLS),
    ],
    "failed checks and a degraded mode": [
        ({"tools": {"oa.reality_check": RED}}, "failed check: Backup System"),
        ({"tools": {"oa.reality_check": RED}}, "mode DEGRADED forbids phase_transitions"),
    ],
    "a constraint that forbids": [
        ({"goal": "Push, and go from phase 7 to phase 8", "context": {"constraints": ["no_git_push"]}}, "no_git_push"),
    ],
    "stale evidence is none in STRICT": [
        ({"reality": summary(timestamp=OLD), "oa_state": {"mode": "STRICT"}}, "stale evidence"),
    ],
}  # fmt: skip


@each("statement", MISSING)
def test_each_criterion_that_is_not_met_is_named(statement: str) -> None:
    wrong = []
    for fields, words in MISSING[statement]:
        run = RulesRun("PhaseTransitionValidator", "Go from phase 7 to phase 8")
        vars(run).update(fields)
        payload: Any = run.ask().payload
        criteria = "\n".join(payload.missing_criteria)
        if payload.transition_status != "NOT_READY" or words not in criteria or "phases.6" in criteria:
            wrong.append((fields, words, criteria))
    assert wrong == []


def test_a_rollback_with_a_plan_is_for_a_person(transition: Any) -> None:
    transition.goal, transition.context = "phase 7 to phase 6", {"rollback_plan": "restore the backup of Friday"}
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert "condition" in {d.category for d in said.diagnostics}


def test_the_kernels_own_phase_wins_over_a_stale_bootstrap(transition: Any) -> None:
    transition.bootstrap["meta"] = {"current_phase": "5"}
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert "kernel_mismatch" in {d.category for d in said.diagnostics}


def test_criteria_that_are_stated_and_met_are_counted(transition: Any) -> None:
    for status in ("done", "COMPLETE", "closed"):
        transition.ssot["phases"] = {"7": {"status": status}}
        assert transition.verdict() == "READY"
        assert transition.ask().rationale.endswith("the one criterion that is stated is met")
    transition.context = evidence({"ok": True})["context"]
    assert transition.ask().rationale.endswith("all 2 stated criteria are met")
    transition.ssot["dms_share_alignment"] = "BROKEN"
    assert transition.ask().degraded


CONDITIONS: list[tuple[dict[str, Any], str, bool]] = [
    # runs that are ready on a condition, its words, and whether an input is degraded
    ({"reality": summary(timestamp=OLD)}, "renewed first", True),
    (evidence({"ok": True, "flaky": True}), "flaky", True),
    ({"context": {"constraints": "no_git_push"}}, "oa_context.constraints", True),
    ({"goal": "Push, and go from phase 7 to phase 8", "context": {"constraints": ["No pushes without approval"]}},
     "may apply", False),
]  # fmt: skip


def test_what_a_person_has_to_see_to_is_a_condition() -> None:
    for fields, words, degraded in CONDITIONS:
        run = RulesRun("PhaseTransitionValidator", "Go from phase 7 to phase 8")
        vars(run).update(fields)
        said: Any = run.ask()
        assert (said.payload.transition_status, said.degraded) == ("READY", degraded), fields
        assert [d for d in said.diagnostics if d.category == "condition" and words in d.message], fields


def test_inputs_that_are_missing_or_broken_are_diagnostics_and_degrade(transition: Any) -> None:
    transition.tools["oa.kernel_status"] = None
    assert transition.ask().degraded
    transition.tools, transition.context = {}, {"evidence": 3}
    assert transition.ask().degraded
    assert "oa_context.evidence is 3, not a list" in [d.message for d in transition.ask().diagnostics]
    transition.context, transition.reality = {}, {"reality_green": True, "checks": []}
    transition.tools["oa.reality_check"] = {"reality_green": True, "failed_checks": []}
    assert [d for d in transition.ask().diagnostics if "no timestamp" in d.message]


def test_more_criteria_than_a_result_holds_are_counted(transition: Any) -> None:
    transition.context = {"phase_done_checklist": {f"item {n}": False for n in range(CRITERIA_MAX + 50)}}
    criteria = transition.ask().payload.missing_criteria
    assert len(criteria) == CRITERIA_MAX
    assert criteria[-1] == "and 51 more"


def test_phases_are_ordered_by_number_then_letters() -> None:
    ordered = ["2", "9.1", "10", "10.4", "27", "27.E", "28A", "28b", "100"]
    shuffled = [*ordered[4:], *ordered[:4]]
    assert sorted(shuffled, key=lambda phase: order(phase) or ((0,), "")) == ordered
    assert order("next") is None


@each(
    "current, proposed, known, between",
    [
        ("7", "8", [], []), ("7", "10", [], ["8", "9"]), ("28A", "28B", [], []), ("28A", "28C", [], ["28B"]),
        ("27.C", "27.E", [], ["27.D"]), ("28B", "29", [], []), ("28", "29", ["28B"], ["28B"]),
        ("10", "10.4", ["10.2", "11"], ["10.2"]), ("x", "8", [], []),
    ],
)  # fmt: skip
def test_what_lies_between_two_phases(current: str, proposed: str, known: list[str], between: list[str]) -> None:
    assert skipped(current, proposed, known) == between


@each(
    "one, other, equal",
    [("28b", "28B", True), ("027", "27", True), ("x", "x", True), ("x", "y", False), ("7", "8", False)],
)
def test_words_that_name_the_same_phase(one: str, other: str, equal: bool) -> None:
    assert same(one, other) == equal
