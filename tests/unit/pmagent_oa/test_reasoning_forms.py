"""The commands' forms: what of them reaches the envelope, and what of a result they show."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.reasoning import PROGRAM_IDS, TEXT_CHARS_MAX, ReasoningResult, safe_payload
from pmagent.contracts.reasoning_forms import (
    GuardFailureInterpreterInput,
    GuardFailureInterpreterOutput,
    OPSBlockGeneratorInput,
    OPSBlockGeneratorOutput,
    PhaseTransitionValidatorInput,
    PhaseTransitionValidatorOutput,
    SafeOPSDecisionInput,
    SafeOPSDecisionOutput,
)
from pmagent.oa.forms import CLAIMS, Input, exit_code, merged, output_of, task_of
from pmagent.oa.reasoning_bridge import OADiagnostic, checked_envelope, checked_result
from tests.support.cases import each
from tests.unit.pmagent_oa.test_reasoning_bridge import ENVELOPE, RESULT

PROGRAM_GOAL: dict[str, dict[str, Any]] = {
    "SafeOPSDecision": {"proposed_action": "Tidy the notes"},
    "OPSBlockGenerator": {"goal": "Tidy the notes"},
    "GuardFailureInterpreter": {"guard_output": {"ok": False}},
    "PhaseTransitionValidator": {"proposed_phase": "28B"},
}


INPUTS: dict[str, type[Input]] = {
    "SafeOPSDecision": SafeOPSDecisionInput, "OPSBlockGenerator": OPSBlockGeneratorInput,
    "GuardFailureInterpreter": GuardFailureInterpreterInput, "PhaseTransitionValidator": PhaseTransitionValidatorInput,
}


def form(program: str, **fields: Any) -> Input:
    """A program's form with these fields besides those that it needs."""
    return msgspec.convert({**PROGRAM_GOAL[program], **fields}, INPUTS[program])


def envelope(program: str, **more: Any) -> Any:
    return checked_envelope({**ENVELOPE, "program_id": program, "tools_allowed": [], **more})


def result(program: str, decision: dict[str, Any], *diagnostics: OADiagnostic, **more: Any) -> ReasoningResult:
    return checked_result(
        {**RESULT, "program_id": program, "decision": decision, "tool_calls": [],
         "diagnostics": msgspec.to_builtins(list(diagnostics)), **more}
    )


def diagnostic(category: str, severity: Any, message: str, remediation: str | None = None) -> OADiagnostic:
    return OADiagnostic(
        type="warn", category=category, severity=severity, message=message, details={}, remediation=remediation
    )


@each("program", PROGRAM_IDS)
def test_a_form_asks_its_program_and_its_context_and_claims_travel_along(program: str) -> None:
    claims = {"mode": "DEGRADED", "phase": 27, "branch": None, "reality_green": False}
    context = {"active_goal": "order", "constraints": ["no_db_writes"]}
    asked = task_of(form(program, kernel_state=claims, oa_context=context))
    assert asked.program_id == program
    assert asked.context["active_goal"] == "order"
    assert asked.context["constraints"] == ["no_db_writes"]
    assert asked.context[CLAIMS] == {"mode": "DEGRADED", "phase": "27", "reality_green": False}


@each("program", PROGRAM_IDS)
@each("state", [None, {}, {"mode": None}])
def test_who_claims_nothing_has_no_claims(program: str, state: Any) -> None:
    assert CLAIMS not in task_of(form(program, kernel_state=state)).context


def test_the_goal_is_the_forms_own_text() -> None:
    assert task_of(form("SafeOPSDecision")).goal == "Tidy the notes"
    assert task_of(form("OPSBlockGenerator")).goal == "Tidy the notes"


def test_the_goal_of_a_form_without_one_names_what_it_is_about() -> None:
    named = task_of(form("GuardFailureInterpreter", guard_name="oa_state"))
    assert named.goal == "Explain why the guard oa_state failed"
    assert task_of(form("GuardFailureInterpreter")).goal == "Explain why a guard failed"
    assert task_of(form("PhaseTransitionValidator")).goal == "Begin phase 28B"
    assert task_of(form("PhaseTransitionValidator", current_phase=28)).goal == "Move from phase 28 to phase 28B"
    assert task_of(form("PhaseTransitionValidator"), "Is it time?").goal == "Is it time?"


def test_a_guards_report_and_name_travel_along() -> None:
    report = {"ok": False, "guard": " dms_alignment ", "missing_in_share": ["a"]}
    assert task_of(form("GuardFailureInterpreter", guard_output=report)).context == {
        "guard_output": report, "guard_name": "dms_alignment",
    }
    given = task_of(form("GuardFailureInterpreter", guard_output=report, guard_name="oa_state")).context
    assert given["guard_name"] == "oa_state", "who asks knows better than the report"


def test_phases_travel_as_words() -> None:
    fields = {"proposed_phase": 28, "current_phase": 27, "phase_done_checklist": {"t": False}}
    asked = task_of(form("PhaseTransitionValidator", **fields))
    assert asked.context == {"proposed_phase": "28", "current_phase": "27", "phase_done_checklist": {"t": False}}


def test_references_and_hints_travel_along() -> None:
    hints = [{"flow_id": "docs.create", "hint": "keep the index sorted"}]
    asked = task_of(form("OPSBlockGenerator", ssot_references=["docs/a.md"], hints=hints))
    assert asked.context == {"ssot_references": ["docs/a.md"], "hints": hints}


@each(
    "workspace, given, held",
    [
        (["a"], ["b"], ["a", "b"]), (["a", "b"], ["b", "c"], ["a", "b", "c"]), (["a"], [], ["a"]), (["a"], None, ["a"]),
        (None, ["b"], ["b"]), ("a", ["b"], ["a", "b"]), (["a", 3], ["b"], ["a", 3, "b"]),
        ({"odd": 1}, ["b"], [{"odd": 1}, "b"]), (["a"], "b", ["a", "b"]),
    ],
)
def test_a_form_adds_constraints_and_removes_none(workspace: Any, given: Any, held: list[Any]) -> None:
    context = merged({"constraints": workspace, "active_goal": "old"}, {"constraints": given, "active_goal": "new"})
    assert context == {"constraints": held, "active_goal": "new"}


def test_contexts_without_constraints_get_none() -> None:
    assert merged({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert merged({"constraints": []}, {}) == {"constraints": []}


@each("action, word", [("PROCEED", "ALLOW"), ("WARN", "CONDITIONAL"), ("ABORT", "DENY")])
def test_a_decision_is_the_same_verdict_in_the_commands_words(action: str, word: str) -> None:
    made = result("SafeOPSDecision", {"allowed_action": action, "safety_check_summary": "s"})
    shown = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert (shown.decision, shown.reasoning) == (word, RESULT["rationale"])
    assert exit_code(made) == {"ALLOW": 0, "CONDITIONAL": 8, "DENY": 1}[word]


def test_conditions_and_warnings_come_from_the_diagnostics() -> None:
    shown = output_of(
        envelope("SafeOPSDecision"),
        result(
            "SafeOPSDecision", {"allowed_action": "WARN", "safety_check_summary": "s"},
            diagnostic("engine", "info", "the rules answered"),
            diagnostic("condition", "warn", "a fresh summary", "pmagent kernel refresh"),
            diagnostic("condition", "info", "somebody agrees"),
            diagnostic("evidence", "warn", "the summary is a day old"),
            diagnostic("evidence", "warn", "the summary is a day old"),
            diagnostic("kernel_mismatch", "error", "the branch differs", "pmagent oa snapshot"),
            diagnostic("policy", "block", "not allowed"), diagnostic("evidence", "info", "for your information"),
        ),
    )
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert shown.conditions == ["a fresh summary (pmagent kernel refresh)", "somebody agrees"]
    assert shown.warnings == ["the summary is a day old", "the branch differs", "not allowed"]


@each("action", ["PROCEED", "ABORT"])
def test_conditions_are_only_those_of_a_conditional_answer(action: str) -> None:
    said = diagnostic("condition", "warn", "a fresh summary", "pmagent kernel refresh")
    made = result("SafeOPSDecision", {"allowed_action": action, "safety_check_summary": "s"}, said)
    shown = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert (shown.conditions, shown.warnings) == ([], ["a fresh summary"])


def test_a_fallback_is_warned_of() -> None:
    said = diagnostic("engine", "warn", "the model gave no answer; the rules answered instead")
    made = result("SafeOPSDecision", {"allowed_action": "PROCEED", "safety_check_summary": "s"}, said)
    shown = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert shown.warnings == [said.message]


def test_a_conditional_answer_always_names_a_condition() -> None:
    made = result("SafeOPSDecision", {"allowed_action": "WARN", "safety_check_summary": "only after a backup"})
    shown = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert shown.conditions == ["only after a backup"]


def test_a_long_diagnostic_is_cut_to_what_a_form_holds() -> None:
    long = diagnostic("condition", "warn", "x" * TEXT_CHARS_MAX, "y" * 100)
    made = result("SafeOPSDecision", {"allowed_action": "WARN", "safety_check_summary": "s"}, long)
    shown = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(shown, SafeOPSDecisionOutput)
    assert len(shown.conditions[0]) == TEXT_CHARS_MAX
    assert shown.conditions[0].endswith("…")


def test_an_interpretation_has_its_plans_lines_as_steps() -> None:
    plan = "1. pmagent init\n\n 2. pmagent oa guard\n"
    decision = {"root_cause": "it is missing", "remediation_plan": plan, "is_transient": True}
    made = result("GuardFailureInterpreter", decision)
    shown = output_of(envelope("GuardFailureInterpreter", oa_context={"guard_name": "oa_state"}), made)
    assert isinstance(shown, GuardFailureInterpreterOutput)
    assert shown.guard_name == "oa_state"
    assert shown.remediation_steps == ["1. pmagent init", "2. pmagent oa guard"]
    assert shown.is_transient is True
    assert exit_code(made) == 0
    odd = output_of(envelope("GuardFailureInterpreter", oa_context={"guard_name": 7}), made)
    assert isinstance(odd, GuardFailureInterpreterOutput)
    assert odd.guard_name == ""


def test_a_transition_recommends_each_remediation_once_and_warns_of_no_criterion_again() -> None:
    decision = {"transition_status": "NOT_READY", "missing_criteria": ["Tests pass"]}
    made = result(
        "PhaseTransitionValidator", decision, diagnostic("evidence", "error", "Tests pass", "run the tests"),
        diagnostic("evidence", "error", "again", "run the tests"), diagnostic("policy", "warn", "phase 28 is skipped"),
    )
    shown = output_of(envelope("PhaseTransitionValidator"), made)
    assert isinstance(shown, PhaseTransitionValidatorOutput)
    assert shown.recommendations == ["run the tests"]
    assert shown.warnings == ["again", "phase 28 is skipped"]
    assert exit_code(made) == 1
    ready = result("PhaseTransitionValidator", {"transition_status": "READY", "missing_criteria": []})
    assert exit_code(ready) == 0


@each("program", PROGRAM_IDS)
@each("status", ["BLOCKED", "FAILED"])
def test_who_was_not_permitted_or_failed_says_no(program: str, status: str) -> None:
    decision = msgspec.to_builtins(safe_payload(program, "the kernel is BLOCKED"))
    made = result(program, decision, status=status, rationale="")
    assert exit_code(made) == 1
    shown = output_of(envelope(program), made)
    if isinstance(shown, SafeOPSDecisionOutput):
        assert (shown.decision, shown.reasoning) == ("DENY", "the kernel is BLOCKED")
    if isinstance(shown, OPSBlockGeneratorOutput):
        assert shown.commands == shown.evidence_required == []


def test_an_empty_block_is_no_block() -> None:
    none = {"ops_block": [], "complexity_score": 1, "risk_analysis": "refused"}
    assert exit_code(result("OPSBlockGenerator", none)) == 1
    assert exit_code(result("OPSBlockGenerator", {**none, "ops_block": ["pmagent status"]})) == 0


def test_each_program_has_its_form() -> None:
    assert list(INPUTS) == list(PROGRAM_IDS)
    assert set(INPUTS.values()) == {
        SafeOPSDecisionInput, OPSBlockGeneratorInput, GuardFailureInterpreterInput, PhaseTransitionValidatorInput,
    }


def test_what_the_reasoning_says_is_not_warned_of_again_but_what_mends_it_is_told() -> None:
    given = {"allowed_action": "ABORT", "safety_check_summary": "the branch is wrong"}
    made = result(
        "SafeOPSDecision", given, diagnostic("policy", "block", "the branch is wrong", "git switch main"),
        diagnostic("evidence", "warn", "it is late"), rationale="aborted: the branch is wrong",
    )
    output = output_of(envelope("SafeOPSDecision"), made)
    assert isinstance(output, SafeOPSDecisionOutput)
    assert output.warnings == ["it is late", "to mend it: git switch main"]
