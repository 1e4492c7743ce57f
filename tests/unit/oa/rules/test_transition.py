"""PhaseTransitionValidator: each criterion that is not met is named, and what cannot be verified is not met."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.oa.reasoning.rules.transition import order, same, skipped
from pmagent.contracts.reasoning import CRITERIA_MAX
from tests.support.rules_runs import OLD


def missing(run: Any) -> str:
    payload = run.ask().payload
    assert payload.transition_status == "NOT_READY"
    return "\n".join(payload.missing_criteria)


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


@pytest.mark.parametrize(
    ("goal", "context"),
    [
        ("Go from phase 7 to phase 8", {}), ("Validate the transition of Phase 7 into 8", {}), ("7 -> 8", {}),
        ("Begin phase 8", {}), ("?", {"proposed_phase": 8}), ("?", {"from_phase": "Phase 7", "to_phase": "phase 8"}),
        ("phase 1 to 2", {"current_phase": 7, "proposed_phase": "8"}), ("Go from phase 7 to phase 8.", {}),
        ("May phase 8 start now that phase 7 is done?", {}), ("Phase 8?", {}), ("Advance from 7 to 8", {}),
    ],
)  # fmt: skip
def test_the_phases_are_read_from_the_context_else_from_the_goal(
    transition: Any, goal: str, context: dict[str, Any]
) -> None:
    transition.goal, transition.context = goal, context
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert said.rationale.startswith("phase 7 to 8, ")


@pytest.mark.parametrize(
    ("goal", "criterion"),
    [
        ("phase 7 to phase 7", "there is no transition to make"),
        ("phase 7 to phase 6", "a rollback needs a plan"),
        ("phase 7 to phase 9", "it would skip 8"),
        ("phase 6 to phase 7", "the kernel is in phase 7, not in 6"),
        ("phase 7 to phase 40", "it would skip 8, 9, 10 and 29 more"),
        ("go on", "the proposed phase is not named"),
        ("phase 8 or phase 9?", "the proposed phase is not named"),
    ],
)
def test_an_order_of_phases_that_is_none_is_missing(transition: Any, goal: str, criterion: str) -> None:
    transition.goal = goal
    assert criterion in missing(transition)


def test_a_name_without_an_order_cannot_be_said_to_follow(transition: Any) -> None:
    transition.context = {"proposed_phase": "launch"}
    assert "cannot be told" in missing(transition)


def test_a_rollback_with_a_plan_is_for_a_person(transition: Any) -> None:
    transition.goal, transition.context = "phase 7 to phase 6", {"rollback_plan": "restore the backup of Friday"}
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert "condition" in {d.category for d in said.diagnostics}
    transition.context = {"rollback_plan": "none"}
    assert "a rollback needs a plan" in missing(transition)


def test_the_kernels_own_phase_wins_over_a_stale_bootstrap(transition: Any) -> None:
    transition.bootstrap["meta"] = {"current_phase": "5"}
    said = transition.ask()
    assert said.payload.transition_status == "READY"
    assert "kernel_mismatch" in {d.category for d in said.diagnostics}


@pytest.mark.parametrize(
    ("checklist", "criterion"),
    [
        ({"docs": True, "tests green": False}, "tests green is not met"),
        ({"docs": "yes"}, "docs is yes, neither true nor false"),
        (["docs"], "not a map of criteria"),
    ],
)
def test_a_checklist_counts_item_by_item(transition: Any, checklist: Any, criterion: str) -> None:
    transition.context = {"phase_done_checklist": checklist}
    assert criterion in missing(transition)


@pytest.mark.parametrize(
    ("context", "criterion"),
    [
        ({"blocking_items": ["finish the index"]}, "finish the index"),
        ({"evidence": [{"source": "preview", "result": {"blocking_items": ["sign it", "seal it"]}}]}, "seal it"),
        ({"evidence": [{"result": {"ok": False}}]}, "ok is false"),
    ],
)
def test_open_items_are_missing_one_by_one(transition: Any, context: dict[str, Any], criterion: str) -> None:
    transition.context = context
    assert criterion in missing(transition)


def test_an_unsteady_check_leaves_it_ready_on_a_condition(transition: Any) -> None:
    transition.context = {"evidence": [{"result": {"ok": True, "flaky": True}}]}
    said = transition.ask()
    assert (said.payload.transition_status, said.degraded) == ("READY", True)


@pytest.mark.parametrize(
    ("entry", "criterion"),
    [
        ({"status": "in_progress"}, "status is in_progress"), ({"status": 3}, "status is 3"),
        ({"blockers": ["one"]}, "one"),
    ],
)
def test_what_ssot_says_of_the_phase_counts(transition: Any, entry: dict[str, Any], criterion: str) -> None:
    transition.ssot["phases"] = {"7": entry, "6": {"status": "open"}}
    assert criterion in missing(transition)
    assert "phases.6" not in missing(transition)


@pytest.mark.parametrize("status", ["done", "COMPLETE", "closed"])
def test_a_phase_that_ssot_calls_done_is_done(transition: Any, status: str) -> None:
    transition.ssot["phases"] = {"7": {"status": status}}
    assert transition.verdict() == "READY"


@pytest.mark.parametrize("tool", ["oa.kernel_status", "oa.ssot_surface", "oa.reality_check"])
def test_a_tool_that_did_not_answer_leaves_it_unverified(transition: Any, tool: str) -> None:
    transition.tools[tool] = None
    assert f"not verifiable: {tool} failed" in missing(transition)
    transition.tools = {}
    transition.allowed.remove(tool)
    assert f"not verifiable: {tool} is not in tools_allowed" in missing(transition)
    assert transition.ask().degraded


def test_failed_checks_and_a_degraded_mode_are_missing(transition: Any) -> None:
    transition.tools["oa.reality_check"] = {"reality_green": True, "failed_checks": ["Backup System"]}
    assert "failed check: Backup System" in missing(transition)
    assert "mode DEGRADED forbids phase_transitions" in missing(transition)


def test_stale_evidence_is_missing_in_strict(transition: Any) -> None:
    transition.reality["timestamp"] = OLD
    assert transition.verdict() == "READY"
    transition.oa_state = {"mode": "STRICT"}
    assert "stale evidence" in missing(transition)


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


@pytest.mark.parametrize(
    ("current", "proposed", "known", "between"),
    [
        ("7", "8", [], []), ("7", "10", [], ["8", "9"]), ("28A", "28B", [], []), ("28A", "28C", [], ["28B"]),
        ("27.C", "27.E", [], ["27.D"]), ("28B", "29", [], []), ("28", "29", ["28B"], ["28B"]),
        ("10", "10.4", ["10.2", "11"], ["10.2"]), ("x", "8", [], []),
    ],
)  # fmt: skip
def test_what_lies_between_two_phases(current: str, proposed: str, known: list[str], between: list[str]) -> None:
    assert skipped(current, proposed, known) == between


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [("28b", "28B", True), ("027", "27", True), ("x", "x", True), ("x", "y", False), ("7", "8", False)],
)
def test_words_that_name_the_same_phase(one: str, other: str, equal: bool) -> None:
    assert same(one, other) == equal


def test_a_current_phase_that_nobody_names_is_missing(transition: Any) -> None:
    transition.goal, transition.context = "?", {"proposed_phase": "8"}
    transition.bootstrap, transition.ssot = {}, {}
    transition.tools["oa.kernel_status"] = {"mode": "NORMAL"}
    transition.tools["oa.ssot_surface"] = {"version": 17}
    assert "the current phase is not known" in missing(transition)
