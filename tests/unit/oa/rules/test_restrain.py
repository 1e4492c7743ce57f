"""The floor: a model's answer is made stricter by the facts, never looser, and each change is told."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.engine import floor
from pmagent.contracts.reasoning import check_payload
from tests.support.cases import each


def held(run: Any, decision: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    payload, changes = floor(run.envelope, run.evidence, check_payload(run.program, decision))
    return msgspec.to_builtins(payload), [change.message for change in changes]


def verdict(word: str) -> dict[str, Any]:
    return {"allowed_action": word, "safety_check_summary": "I looked"}


@each("model", ["PROCEED", "WARN", "ABORT"])
@each("goal, own", [("Improve it", 0), ("Migrate the database", 1), ("Push it", 2)])
def test_the_worse_verdict_of_both_stands(safeops: Any, model: str, goal: str, own: int) -> None:
    order = ["PROCEED", "WARN", "ABORT"]
    safeops.goal, safeops.context = goal, {"constraints": ["no_git_push"]}
    decision, changes = held(safeops, verdict(model))
    assert decision["allowed_action"] == order[max(own, order.index(model))]
    assert len([change for change in changes if "became" in change]) == (own > order.index(model))
    backup = [change for change in changes if "a fresh backup" in change]
    assert len(backup) == (max(own, order.index(model)) == own == 1), "what stays permitted keeps the rules' conditions"


def test_criteria_are_united_and_the_models_come_last(transition: Any) -> None:
    transition.context = {"phase_done_checklist": {"docs": False}}
    decision, changes = held(transition, {"transition_status": "NOT_READY", "missing_criteria": ["mine"]})
    assert decision["missing_criteria"] == ["oa_context.phase_done_checklist: docs is not met", "mine"]
    assert len(changes) == 1
    assert (
        held(transition, {"transition_status": "READY", "missing_criteria": []})[0]["transition_status"] == "NOT_READY"
    )


def test_a_models_own_doubt_stands_where_the_rules_have_none(transition: Any) -> None:
    doubt = {"transition_status": "NOT_READY", "missing_criteria": ["mine"]}
    assert held(transition, doubt) == (doubt, [])


def block(*commands: str, risk: str = "none", score: int = 1) -> dict[str, Any]:
    return {"ops_block": list(commands), "complexity_score": score, "risk_analysis": risk}


@each("command", ["git push origin main", "rm -rf build"])
def test_a_block_with_a_forbidden_command_is_emptied(generator: Any, command: str) -> None:
    generator.context = {"constraints": ["no_git_push"]}
    decision, changes = held(generator, block("make a", command))
    assert decision["ops_block"] == []
    assert command in changes[0]


def test_risks_that_a_model_leaves_out_are_added(generator: Any) -> None:
    decision, changes = held(generator, block("rm old.txt"))
    assert decision["ops_block"] == ["rm old.txt"]
    assert "rm old.txt: removes files" in decision["risk_analysis"]
    assert decision["complexity_score"] > 1
    assert len(changes) == 2
    assert held(generator, decision) == (decision, [])


def test_what_the_rules_do_not_permit_becomes_the_safe_payload(generator: Any) -> None:
    generator.mode = "DEGRADED"
    assert held(generator, block("make a"))[0]["ops_block"] == []
    assert held(generator, block()) == (block(), [])


def test_a_lasting_failure_is_not_called_transient_and_a_dangerous_plan_is_replaced(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "missing_surfaces": ["share/A.json"]}}
    decision, changes = held(
        interpreter, {"root_cause": "mine", "remediation_plan": "1. rm -rf share", "is_transient": True}
    )
    assert decision["root_cause"] == "mine"
    assert not decision["is_transient"]
    assert "rm -rf" not in decision["remediation_plan"]
    assert len(changes) == 2


def test_the_payload_of_another_program_is_replaced(safeops: Any) -> None:
    payload, changes = floor(safeops.envelope, safeops.evidence, check_payload("OPSBlockGenerator", block("make a")))
    assert msgspec.to_builtins(payload)["allowed_action"] == "PROCEED"
    assert len(changes) == 1


def test_of_a_failure_whose_cause_is_not_known_the_model_may_say_that_it_passes(interpreter: Any) -> None:
    guess = {"root_cause": "mine", "remediation_plan": "1. wait", "is_transient": True}
    interpreter.context = {"guard_output": {"ok": False}}
    assert held(interpreter, guess) == (guess, [])
    interpreter.context = {"guard_output": {"ok": False, "error": "timed out"}}
    assert held(interpreter, guess) == (guess, [])
