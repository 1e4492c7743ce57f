"""GuardFailureInterpreter: the deepest cause of any report, a plan that ends with the guard, and what may pass."""

from __future__ import annotations

import time
from typing import Any

from pmagent.actors.oa.reasoning.rules.causes import INVALID, spoken
from pmagent.contracts.reasoning import TEXT_CHARS_MAX
from tests.support.cases import each

REFRESH = "pmagent kernel refresh"
MISMATCH = {"check": "phase", "expected": "7", "actual": "6", "surfaces": ["share/A.json", "share/B.json"]}


def mend(category: str, message: str, remediation: str | None = None) -> dict[str, Any]:
    return {"category": category, "message": message, "severity": "error", "remediation": remediation}


LOG_DAMAGED = mend("schema_violation", "the log is damaged: sum")


@each("report, cause, transient", [
    ({"mismatches": [MISMATCH]}, "phase: share/A.json says 7, share/B.json says 6", False),
    ({"missing_surfaces": ["share/A"], "mismatches": [MISMATCH]}, "is missing: share/A is missing", False),
    (
        {"missing_surfaces": ["share/orchestrator_assistant/STATE.json", "share/A"]},
        "a surface is missing: share/A is missing", False,
    ),
    ({"issues": ["the connection to the database was refused"]}, "database was refused", True),
    ({"issues": [], "details": {"errors": ["schema: type mismatch in x"]}}, "a surface is not valid", False),
    ({"checks": {"driver_available": True, "connection_ok": False}}, "a check failed: connection_ok", False),
    ({"checks": [{"name": "B", "passed": False, "message": "none since May"}]}, "B: none since May", False),
    ({"failed_checks": ["Backup"]}, "a check failed: Backup", False),
    ({"mode": "db_off"}, "the database is not reachable", True),
    ({"missing_in_share": ["a.md"], "extra_in_share": []}, "missing_in_share: a.md", False),
    ({"diagnostics": [mend("tri_surface_incoherence", "branch")]}, "contradict each other: branch", False),
    ({"diagnostics": [LOG_DAMAGED, mend("missing_surface", "x: missing")]}, "the log is damaged: ", False),
    ({"output": "", "stderr": "Traceback: could not parse"}, "its stderr says: Traceback", False),
    ({"error": "timed out after 60 s"}, "timed out after 60 s", True),
    ({"error": {"kind": "usage", "message": "there is no guard tide"}}, "there is no guard tide", False),
    ({"issues": ["the check flapped twice"]}, "the check flapped twice", True),
])  # fmt: skip
def test_the_deepest_cause_is_named_whatever_the_report_looks_like(
    interpreter: Any, report: dict[str, Any], cause: str, transient: bool
) -> None:
    interpreter.context = {"guard_output": {"ok": False} | report, "guard_name": "their_guard"}
    said = interpreter.ask()
    assert cause in said.payload.root_cause
    assert said.payload.is_transient == transient
    assert said.payload.remediation_plan.splitlines()[-1].endswith("run the guard their_guard again")
    assert not said.degraded


def test_a_warning_is_no_cause_of_a_failure_that_has_another(interpreter: Any) -> None:
    absent = mend("missing_surface", "share/C.json: missing") | {
        "severity": "warn", "details": {"path": "share/C.json"},
    }
    told = mend("kernel_mismatch", "phase: they disagree", "do a") | {"details": {"check": "phase"}}
    report = {
        "ok": False, "mismatches": [MISMATCH], "missing_surfaces": ["share/C.json"], "diagnostics": [absent, told],
    }
    interpreter.context = {"guard_output": report}
    said = interpreter.ask().payload
    assert said.root_cause == "surfaces contradict each other: phase: share/A.json says 7, share/B.json says 6"
    assert said.remediation_plan.startswith("1. do a\n2. run")
    interpreter.context = {"guard_output": report | {"mismatches": [], "diagnostics": [absent]}}
    assert interpreter.ask().payload.root_cause == "a surface is missing: share/C.json: missing"


def test_the_plan_is_made_of_the_reports_and_the_kernels_remediations_each_once(interpreter: Any) -> None:
    report = {"ok": False, "diagnostics": [mend("kernel_mismatch", "a", "do a"), mend("config_drift", "b", REFRESH)]}
    interpreter.context = {"guard_output": report, "guard_name": "oa_state"}
    interpreter.mode = "DEGRADED"
    interpreter.tools = {
        "oa.kernel_status": {"mode": "DEGRADED", "interpretation": {"recommended_commands": [REFRESH, "do c"]}},
        "oa.guard.run": report,
    }
    said = interpreter.ask()
    assert said.payload.remediation_plan.splitlines() == [
        "1. do a", f"2. {REFRESH}", "3. do c", "4. pmagent oa guard --mode STRICT",
    ]  # fmt: skip
    assert said.degraded


def test_a_plan_never_advises_what_no_block_may_hold(interpreter: Any) -> None:
    report = {"ok": False, "diagnostics": [mend("kernel_mismatch", "a", "rm -rf /")]}
    interpreter.context = {"guard_output": report}
    assert "rm -rf" not in interpreter.ask().payload.remediation_plan


def test_a_failure_that_passes_now_is_transient(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "mismatches": [MISMATCH]}, "guard_name": "oa_state"}
    said = interpreter.ask()
    assert said.payload.is_transient
    assert "the same guard passes now" in said.rationale


def test_without_a_report_the_guard_itself_is_asked(interpreter: Any) -> None:
    interpreter.context = {"guard_name": "oa_state"}
    interpreter.tools["oa.guard.run"] = {"ok": False, "mode": "HINT", "mismatches": [MISMATCH]}
    said = interpreter.ask()
    assert "share/A.json says 7" in said.payload.root_cause
    assert not said.payload.is_transient


def test_the_kernels_reasons_explain_a_failure_that_lies_above_them(interpreter: Any) -> None:
    interpreter.mode = "BLOCKED"
    interpreter.tools["oa.kernel_status"] = {"mode": "BLOCKED", "reasons": ["share/A.json: is missing"]}
    interpreter.context = {"guard_output": {"ok": False, "mismatches": [MISMATCH]}}
    assert interpreter.ask().payload.root_cause.startswith("a surface is missing: share/A.json: is missing")


def test_a_surface_that_report_and_kernel_both_say_is_missing_is_told_once(interpreter: Any) -> None:
    interpreter.mode = "BLOCKED"
    interpreter.tools["oa.kernel_status"] = {
        "mode": "BLOCKED", "reasons": ["share/A.json: is missing", "share/B.json: is missing"],
    }  # fmt: skip
    interpreter.context = {"guard_output": {"ok": False, "issues": ["share/A.json: missing"]}}
    cause = "a surface is missing: share/A.json: missing (also: share/B.json: is missing)"
    assert interpreter.ask().payload.root_cause == cause
    interpreter.context = {"guard_output": {"ok": False, "missing_surfaces": ["share/A.json", "share/B.json"]}}
    cause = "a surface is missing: share/A.json is missing (also: share/B.json is missing)"
    assert interpreter.ask().payload.root_cause == cause


def test_a_provisional_summary_may_pass_by_itself(interpreter: Any) -> None:
    interpreter.reality["provisional"] = True
    interpreter.context = {"guard_output": {"ok": False, "failed_checks": ["a"]}}
    assert interpreter.ask().payload.is_transient
    interpreter.context = {"guard_output": {"ok": False, "missing_surfaces": ["a"]}}
    assert not interpreter.ask().payload.is_transient


def test_a_report_that_is_ok_is_not_explained_away(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": True, "mismatches": []}, "guard_name": "oa_state"}
    said = interpreter.ask()
    assert said.payload.root_cause == "nothing failed: the guard oa_state reports ok"
    assert not said.payload.is_transient


def test_a_guard_that_passed_then_and_fails_now_is_explained(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": True}, "guard_name": "oa_state"}
    interpreter.tools["oa.guard.run"] = {"ok": False, "mismatches": [MISMATCH]}
    assert "share/A.json says 7" in interpreter.ask().payload.root_cause


@each("given", [{}, {"ok": False}, {"ok": False, "colour": "red"}, "broken", [1], None])
def test_a_report_without_a_cause_is_said_to_have_none(interpreter: Any, given: Any) -> None:
    interpreter.context = {"guard_output": given}
    said = interpreter.ask()
    assert said.payload.root_cause.startswith("not determined")
    assert said.degraded


def test_a_report_of_many_causes_stays_bounded_and_printable(interpreter: Any) -> None:
    issues = [f"{number} \x1b[31m" + "x" * 1_000 for number in range(200)]
    interpreter.context = {"guard_output": {"ok": False, "issues": issues}}
    said = interpreter.ask()
    assert len(said.payload.root_cause) <= TEXT_CHARS_MAX
    assert "\x1b" not in said.payload.root_cause + said.payload.remediation_plan + said.rationale


def test_what_may_pass_is_waited_for_when_nothing_else_is_advised(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "error": "timed out"}}
    assert interpreter.ask().payload.remediation_plan.startswith("1. wait until")
    advised = {"ok": False, "errors": [{"message": "timed out", "remediation": "start it"}]}
    interpreter.context = {"guard_output": advised}
    plan = interpreter.ask().payload.remediation_plan
    assert plan.startswith("1. start it")
    assert "wait" not in plan


def test_each_cause_is_a_diagnostic_with_its_remediation_if_it_has_one(interpreter: Any) -> None:
    report = {"ok": False, "errors": [{"message": "a", "remediation": "do a"}, "b"]}
    interpreter.context = {"guard_output": report}
    assert [(d.message, d.remediation) for d in interpreter.ask().diagnostics] == [("a", "do a"), ("b", None)]


def test_a_guard_that_could_not_be_run_again_is_a_degraded_input(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "failed_checks": ["a"]}, "guard_name": "oa_state"}
    assert not interpreter.ask().degraded
    interpreter.tools["oa.guard.run"] = None
    said = interpreter.ask()
    assert said.degraded
    assert "a check failed: a" in said.payload.root_cause


def test_a_failed_check_is_the_cause_and_what_other_surfaces_say_of_it_follows(interpreter: Any) -> None:
    """Reality is not green because of the check; the surface that says so is a valid one."""
    late = [
        {"check": check, "expected": False, "actual": True, "surfaces": ["share/R.json", "share/B.json"]}
        for check in ("reality", "Tide Gauge")
    ]
    interpreter.reality = {
        "reality_green": False, "checks": [{"name": "Tide Gauge", "passed": False, "message": "dry"}],
    }
    interpreter.context = {"guard_output": {"ok": False, "mismatches": late}, "guard_name": "oa_state"}
    advice = [REFRESH, f"mend what Tide Gauge checks, then: {REFRESH}"]
    interpreter.tools = {
        "oa.kernel_status": {
            "mode": "DEGRADED", "reasons": ["share/R.json: reality_green is false", "check failed: Tide Gauge"],
            "interpretation": {"recommended_commands": advice},
        },
        "oa.guard.run": {"ok": False, "mismatches": late},
    }
    said = interpreter.ask().payload
    assert said.root_cause == (
        "a check failed: Tide Gauge: dry (what follows from it: reality: share/R.json says false, share/B.json says "
        "true; Tide Gauge: share/R.json says false, share/B.json says true; share/R.json: reality_green is false)"
    )
    assert said.remediation_plan.splitlines() == [f"1. {advice[1]}", "2. pmagent oa guard --mode STRICT"]


def test_a_surface_that_contradicts_another_is_a_cause_where_no_check_failed(interpreter: Any) -> None:
    late = {"check": "reality", "expected": False, "actual": True, "surfaces": ["share/R.json", "share/B.json"]}
    interpreter.context = {"guard_output": {"ok": False, "mismatches": [late]}}
    assert interpreter.ask().payload.root_cause.startswith("surfaces contradict each other: reality: ")
    interpreter.context = {"guard_output": {"ok": False, "issues": ["share/R.json: reality_green is false"]}}
    assert interpreter.ask().payload.root_cause == "reality is not green: share/R.json: reality_green is false"


def test_a_failed_check_of_the_report_is_not_told_again_from_the_kernel(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "checks": [{"name": "B", "passed": False, "message": "old"}]}}
    interpreter.tools["oa.kernel_status"] = {"mode": "DEGRADED", "reasons": ["check failed: B", "check failed: C"]}
    assert interpreter.ask().payload.root_cause == "a check failed: B: old (also: failed check: C)"


def test_what_a_path_is_called_says_nothing_of_its_state(interpreter: Any) -> None:
    interpreter.context = {"guard_output": {"ok": False, "issues": ["the sum of log/missing.json differs"]}}
    assert interpreter.ask().payload.root_cause.startswith("surfaces contradict each other: ")


def test_long_words_are_looked_through_once() -> None:
    """Processor time, so that a busy machine changes nothing; looked through from every letter they take twenty times
    as long."""
    began = time.process_time()
    for text in ('"\\' * 1_000, "a-" * 1_000, "a/" * 1_000):
        for _ in range(200):
            spoken(text)
    assert time.process_time() - began < 10.0
    assert spoken("share/missing/x.json is malformed").depth == INVALID


@each("reason, kind", [
    ("share/A.json: is missing", "a surface is missing"),
    ("share/A.json: cannot be read (denied)", "a surface is not valid"),
    ("share/A.json: is larger than 4 MiB", "a surface is not valid"),
    ("share/A.json: is not UTF-8", "a surface is not valid"),
    ("share/A.json: is not JSON", "a surface is not valid"),
    ("share/A.json: lacks what the contract reads from it (branch)", "a surface is not valid"),
    ("check failed: Tide Gauge", "a check failed"),
    ("share/A.json: reality_green is false", "reality is not green"),
    ("branch: share/A.json says main, share/B.json says quay", "surfaces contradict each other"),
    ("share/H.json declares DEGRADED", "what the reports name"),
])
def test_each_reason_of_the_kernel_is_of_its_kind(interpreter: Any, reason: str, kind: str) -> None:
    interpreter.context = {"guard_output": {"ok": False}}
    interpreter.tools["oa.kernel_status"] = {"mode": "BLOCKED", "reasons": [reason]}
    assert interpreter.ask().payload.root_cause.startswith(f"{kind}: ")
