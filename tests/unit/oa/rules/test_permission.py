"""When a program may answer at all (docs/design.md §13.3), and which tools it asks for."""

from __future__ import annotations

from typing import Any

from pmagent.actors.oa.reasoning.rules.engine import permitted, plan
from pmagent.actors.oa.reasoning.rules.goal_commands import GUARD_NAMES
from pmagent.contracts.reasoning import PROGRAM_IDS, PROGRAM_TOOLS, ProgramId, is_safe
from pmagent.oa.guards.table import GUARDS
from tests.support.cases import each
from tests.support.rules_runs import RulesRun

OTHERS = [program for program in PROGRAM_IDS if program != "GuardFailureInterpreter"]


REFRESH = "pmagent kernel refresh"
RED = {"reality_green": False, "checks": [{"name": "Tide Gauge", "passed": False, "message": "dry"}]}


def claiming(**claim: Any) -> dict[str, Any]:
    return {"context": {"claimed_kernel_state": claim}}


FORBIDDING: list[tuple[dict[str, Any], str, str]] = [
    # what is so, how the rationale names it, and the command that mends it
    ({"mode": "BLOCKED"}, "kernel_state_ref.mode is BLOCKED", "pmagent status"),
    ({"mode": "BLOCKED", "bootstrap": {}}, "kernel_state_ref.bootstrap is empty", "pmagent init"),
    ({"reality": {"reality_green": False}}, "reality_summary.reality_green is false", REFRESH),
    ({"reality": {}}, "reality_summary.reality_green is null", REFRESH),
    ({"reality": {"reality_green": "true"}}, "reality_summary.reality_green is true", REFRESH),
    ({"reality": RED}, "failed check: Tide Gauge", f"mend what Tide Gauge checks, then: {REFRESH}"),
    ({"bootstrap": {"kernel_ok": False}}, "bootstrap.kernel_ok is false", REFRESH),
    (claiming(mode="BLOCKED"), "the caller claims mode BLOCKED", "pmagent status"),
    (claiming(reality_green=False), "claimed_kernel_state.reality_green is false", REFRESH),
    (claiming(mode="fine"), "claimed_kernel_state.mode is fine, which is no mode", "pmagent status"),
]


@each("program", OTHERS)
def test_the_envelope_alone_forbids_says_why_and_names_the_command_that_mends_it(program: ProgramId) -> None:
    wrong = []
    for fields, named, command in FORBIDDING:
        run = RulesRun(program)
        vars(run).update(fields)
        said = permitted(run.envelope)
        first = said.diagnostics[0] if said is not None and not said.permitted and is_safe(said.payload) else None
        fits = first is not None and first.severity == "block" and command in str(first.remediation)
        if said is None or not fits or named not in said.rationale:
            wrong.append((fields, said))
    assert wrong == []


@each("program", OTHERS)
def test_what_the_kernel_says_during_the_run_forbids_too(program: ProgramId) -> None:
    statuses: list[dict[str, Any]] = [
        {"mode": "BLOCKED"}, {"mode": "NORMAL", "reality_green": False}, {"mode": "NORMAL", "reality_green": None},
        {"mode": "NORMAL", "kernel_ok": False}, {"mode": "NORMAL", "ok": False}, {"mode": "sunny"},
        {"mode": ["NORMAL"]},
    ]
    for status in statuses:
        run = RulesRun(program)
        assert permitted(run.envelope) is None
        run.tools["oa.kernel_status"] = status
        said = run.ask()
        assert not said.permitted
        assert is_safe(said.payload)
        assert "oa.kernel_status" in said.rationale


def test_a_better_kernel_during_the_run_does_not_lift_what_the_envelope_says(safeops: Any) -> None:
    safeops.mode = "DEGRADED"
    safeops.tools["oa.kernel_status"] = {"mode": "NORMAL", "reality_green": True}
    said = safeops.ask()
    assert said.payload.allowed_action == "ABORT"
    assert "mode: kernel_state_ref says DEGRADED, oa.kernel_status says NORMAL" in [d.message for d in said.diagnostics]


@each("change", [{"mode": "BLOCKED"}, {"reality": {}}, {"bootstrap": {"kernel_ok": False}}])
def test_the_guard_interpreter_runs_in_every_state_and_says_that_inputs_are_degraded(
    interpreter: Any, change: dict[str, Any]
) -> None:
    vars(interpreter).update(change)
    said = interpreter.ask()
    assert said.permitted
    assert said.degraded


@each("program", OTHERS)
def test_every_tool_of_the_table_is_planned_in_its_order_and_no_other(program: ProgramId) -> None:
    run = RulesRun(program)
    assert [tool for tool, _ in plan(run.envelope)] == list(PROGRAM_TOOLS[program])
    run.allowed = run.allowed[1:]
    assert [tool for tool, _ in plan(run.envelope)] == list(PROGRAM_TOOLS[program])[1:]


@each("context, guard", [
    ({"guard_name": "OA-State"}, "oa_state"),
    ({"guard_output": {"ok": False, "guard": "dms.alignment"}}, "dms_alignment"),
    ({"guard_name": "somebody_elses"}, None),
    ({"guard_name": 7, "guard_output": []}, None),
    ({}, None),
])
def test_the_guard_in_question_is_run_again_if_there_is_one_of_that_name(
    interpreter: Any, context: dict[str, Any], guard: str | None
) -> None:
    interpreter.context = context
    calls = dict(plan(interpreter.envelope))
    assert calls.get("oa.guard.run") == ({"name": guard, "mode": "HINT"} if guard else None)


def test_the_rules_know_the_guards_that_there_are() -> None:
    assert tuple(GUARDS) == GUARD_NAMES
