"""SafeOPSDecision: objections abort, doubts warn, and each names the input that decided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rules_runs import OLD, summary

WORK = ["feature_work", "ops_blocks", "migrations", "phase_transitions"]


def conditions(said: Any) -> list[str]:
    return [d.message for d in said.diagnostics if d.category == "condition"]


def test_ordinary_work_on_a_healthy_kernel_proceeds_and_says_on_what(safeops: Any) -> None:
    said = safeops.ask()
    assert said.payload.allowed_action == "PROCEED"
    assert not said.degraded
    assert said.diagnostics == []
    for input_ in ("mode NORMAL", "reality green", "feature_work"):
        assert input_ in said.rationale


@pytest.mark.parametrize("tool", ["oa.kernel_status", "oa.reality_summary"])
def test_a_tool_that_is_not_allowed_or_fails_leaves_the_posture_unverified(safeops: Any, tool: str) -> None:
    safeops.tools[tool] = None
    assert safeops.verdict() == "blocked"
    assert f"{tool} failed: no such file" in safeops.ask().rationale
    safeops.tools = {}
    safeops.allowed.remove(tool)
    assert safeops.verdict() == "blocked"
    assert f"{tool} not in tools_allowed" in safeops.ask().rationale


@pytest.mark.parametrize("said", [{}, {"error": "not JSON"}, {"phase": "7", "branch": "main"}])
def test_a_status_that_does_not_say_how_the_kernel_is_proves_nothing(safeops: Any, said: dict[str, Any]) -> None:
    safeops.tools["oa.kernel_status"] = said | {"note": "x"}
    assert safeops.verdict() == "blocked"
    assert "oa.kernel_status does not say how the kernel is" in safeops.ask().rationale


@pytest.mark.parametrize("action", WORK)
def test_a_degraded_kernel_forbids_work(safeops: Any, action: str) -> None:
    safeops.mode, safeops.context = "DEGRADED", {"action_class": action}
    said = safeops.ask()
    assert said.payload.allowed_action == "ABORT"
    assert f"mode DEGRADED forbids {action}" in said.rationale


@pytest.mark.parametrize("action", ["remediation", "diagnostic"])
def test_a_degraded_kernel_lets_care_go_on_with_conditions(safeops: Any, action: str) -> None:
    safeops.mode, safeops.context = "DEGRADED", {"action_class": action}
    said = safeops.ask()
    assert said.payload.allowed_action == "WARN"
    assert said.degraded
    assert conditions(said)


@pytest.mark.parametrize("action", ["deploy", "", 3, None, ["diagnostic"]])
def test_an_action_class_that_does_not_exist_aborts(safeops: Any, action: Any) -> None:
    safeops.context = {"action_class": action}
    assert safeops.verdict() == ("PROCEED" if action is None else "ABORT")


def test_a_backup_that_only_the_caller_vouches_for_is_not_proven(safeops: Any) -> None:
    safeops.goal, safeops.reality = "Migrate the database", summary(checks=[])
    safeops.context = {"evidence": [{"source": "backup", "result": {"ok": True}}]}
    assert safeops.ask().degraded


@pytest.mark.parametrize("given", ["no_git_push", [3], {"a": 1}, 3, [None, "no_db_writes"]])
def test_constraints_of_another_shape_are_a_doubt(safeops: Any, given: Any) -> None:
    safeops.context = {"constraints": given}
    said = safeops.ask()
    assert said.payload.allowed_action == "WARN"
    assert "oa_context.constraints" in said.rationale


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        ("Run `rm -rf /srv/data`", "ABORT"), ("Run `git push origin main`", "WARN"), ("Run `make docs`", "PROCEED"),
        ("Please rm -rf the old build", "WARN"), ("Run `git push --force`", "ABORT"),
    ],
)  # fmt: skip
def test_commands_that_the_operation_states_are_held_to_what_a_block_may_hold(
    safeops: Any, goal: str, verdict: str
) -> None:
    safeops.goal = goal
    assert safeops.verdict() == verdict
    safeops.goal, safeops.context = "Do it", {"commands": [goal.split("`")[1]] if "`" in goal else []}
    assert safeops.verdict() == (verdict if "`" in goal else "PROCEED")


def test_a_declared_migration_writes_whatever_its_goal_says(safeops: Any) -> None:
    safeops.goal, safeops.context = "Apply number 42", {"action_class": "migrations", "constraints": ["no_db_writes"]}
    assert safeops.verdict() == "ABORT"


def test_declaring_a_migration_to_be_something_else_does_not_lower_its_stakes(safeops: Any) -> None:
    safeops.goal, safeops.context = "Migrate the database", {"action_class": "diagnostic"}
    assert safeops.verdict() == "WARN"


def test_what_can_be_read_of_broken_constraints_still_forbids(safeops: Any) -> None:
    safeops.goal, safeops.context = "Push it", {"constraints": [None, "no_git_push"]}
    assert safeops.verdict() == "ABORT"


HARD = [
    {"ok": False}, {"passed": False}, {"details": {"unexpected_files": ["a.txt"]}}, {"errors": 2}, {"drift": True},
    {"status": "failed"}, {"checks": [{"name": "x", "ok": False}]}, {"missing": ["b"]}, {"no_errors": False},
    {"failure": "the disk is full"}, False, "failed", {"history": ["fail", "fail"]}, {"timed_out": True},
    {"blockers": [{"name": "one"}]},
]
SOFT = [
    {"ok": True, "flapping": True}, {"recent_failures": 3}, {"retries": 2}, {"state": "unstable"}, {"ok": None},
    {"runs": [{"ok": False}, {"ok": True}]}, {"previous": {"ok": False}, "ok": True}, {"previously_failing": True},
    {"ok": True, "failures_24h": 2}, {"failed_in_last_5": 1}, {"last_7_runs": ["pass", "fail"]},
    "flapping", {"ok": True, "partial": True}, {"skipped": ["b"]}, {"complete": False}, {"status": "inconclusive"},
    {"coverage": "partial"},
]  # fmt: skip
FINE = [
    {"ok": True}, {"errors": []}, {"failed": 0}, {"missing": None}, {"issues": "none"}, {"no_errors": True},
    {"fixed_issues": 4}, {"skipped": 0, "complete": True}, {"status": "passed", "count": 12, "files": ["a"]},
    {"blockers": {}}, {"history": ["pass", "pass"]}, {"timeout": 60}, [], True, "passed",
]


@pytest.mark.parametrize(("results", "verdict"), [(HARD, "ABORT"), (SOFT, "WARN"), (FINE, "PROCEED")])
def test_results_of_the_callers_checks_count_by_what_their_keys_say(safeops: Any, results: Any, verdict: str) -> None:
    for result in results:
        safeops.context = {"evidence": [{"source": "a check", "result": result}]}
        said = safeops.ask()
        assert said.payload.allowed_action == verdict, result
        assert said.degraded == (verdict != "PROCEED")
        if verdict != "PROCEED":
            assert "oa_context.evidence[0] (a check)" in said.rationale


def test_a_check_that_failed_and_passes_when_run_again_is_unsteady(safeops: Any) -> None:
    pieces = [{"source": "a", "result": {"ok": ok}} for ok in (False, True)]
    safeops.context = {"evidence": pieces}
    assert safeops.verdict() == "WARN"
    safeops.context = {"evidence": pieces[::-1]}
    assert safeops.verdict() == "ABORT"
    safeops.context = {"evidence": [pieces[0], pieces[1] | {"source": "b"}]}
    assert safeops.verdict() == "ABORT"


@pytest.mark.parametrize("piece", [{"source": "a"}, {"source": "a", "result": None}, {"result": {}}])
def test_a_check_without_a_result_proves_nothing(safeops: Any, piece: dict[str, Any]) -> None:
    safeops.context = {"evidence": [piece]}
    assert safeops.verdict() == "WARN"


def test_declared_care_may_mend_what_a_check_found(safeops: Any) -> None:
    safeops.context = {"evidence": [{"result": {"ok": False}}], "action_class": "remediation"}
    assert safeops.verdict() == "WARN"


@pytest.mark.parametrize("given", ["all fine", {"ok": True}, [3]])
def test_evidence_of_another_shape_is_a_doubt(safeops: Any, given: Any) -> None:
    safeops.context = {"evidence": given}
    assert safeops.verdict() == "WARN"


def test_what_passed_checks_list_is_not_read_as_failure(safeops: Any) -> None:
    details = {"missing": ["x"], "stale": ["y"], "errors": 3}
    safeops.reality = summary(checks=[{"name": "Backup", "passed": True, "details": details}])
    assert safeops.verdict() == "PROCEED"


@pytest.mark.parametrize(("extra", "verdict"), [("recent_failures", "WARN"), ("failing_checks", "ABORT")])
def test_unknown_keys_of_the_reality_summary_count(safeops: Any, extra: str, verdict: str) -> None:
    safeops.reality = summary(**{extra: 2})
    assert safeops.verdict() == verdict


@pytest.mark.parametrize("stamp", [OLD, "2026-02-28T23:59:00Z", "2026-03-01T12:30:00Z", "yesterday", 5])
def test_evidence_that_is_too_old_or_from_ahead_is_none_in_strict_and_a_doubt_otherwise(
    safeops: Any, stamp: Any
) -> None:
    safeops.reality = summary(timestamp=stamp)
    said = safeops.ask()
    assert said.payload.allowed_action == "WARN"
    assert "pmagent kernel refresh" in [d.remediation for d in said.diagnostics if d.category == "condition"]
    safeops.oa_state = {"mode": "STRICT"}
    assert safeops.verdict() == "blocked"


@pytest.mark.parametrize("stamp", ["2026-03-01T12:04:00Z", "2026-03-01T00:00:01Z", "2026-03-01T12:30:00+01:00"])
def test_evidence_within_the_limits_is_fresh(safeops: Any, stamp: str) -> None:
    safeops.reality, safeops.oa_state = summary(timestamp=stamp), {"mode": "STRICT"}
    assert safeops.verdict() == "PROCEED"


@pytest.mark.parametrize("result", [{"ok": True, "last_run": OLD}, {"ok": True, "age_hours": 72}, {"stale": True}])
def test_a_check_that_is_too_old_is_none_either(safeops: Any, result: dict[str, Any]) -> None:
    safeops.context = {"evidence": [{"source": "a", "result": result}]}
    assert safeops.verdict() == "WARN"
    safeops.oa_state = {"mode": "STRICT"}
    assert safeops.verdict() == "blocked"


def test_a_summary_without_a_time_is_told(safeops: Any) -> None:
    del safeops.reality["timestamp"]
    said = safeops.ask()
    assert said.payload.allowed_action == "PROCEED"
    assert "no timestamp" in said.diagnostics[0].message


@pytest.mark.parametrize(
    ("alignment", "verdict"), [("OK", "PROCEED"), ("UNKNOWN", "PROCEED"), ("BROKEN", "ABORT"), ("ERROR", "ABORT")]
)
def test_documents_out_of_line_forbid_work(safeops: Any, alignment: str, verdict: str) -> None:
    safeops.ssot["dms_share_alignment"] = alignment
    said = safeops.ask()
    assert said.payload.allowed_action == verdict
    assert bool(said.diagnostics) == (alignment != "OK")


@pytest.mark.parametrize("claim", [{"phase": "8"}, {"branch": "feature"}, {"phase": 8, "mode": "NORMAL"}])
def test_a_caller_who_believes_another_phase_or_branch_is_warned(safeops: Any, claim: dict[str, Any]) -> None:
    safeops.context = {"claimed_kernel_state": claim}
    said = safeops.ask()
    assert said.payload.allowed_action == "PROCEED"
    assert {d.category for d in said.diagnostics} == {"kernel_mismatch"}


def test_a_bootstrap_that_contradicts_the_summary_is_named_and_degrades(safeops: Any) -> None:
    safeops.bootstrap["health"] = {"reality_green": False}
    said = safeops.ask()
    assert said.payload.allowed_action == "ABORT"
    assert "tri_surface_incoherence" in {d.category for d in said.diagnostics}


@pytest.mark.parametrize(
    "check",
    [{"name": 5, "passed": True}, {"name": "Backup", "passed": None}, {"name": "Backup"}, "Backup", {"passed": True}],
)
def test_only_a_named_and_passed_check_proves_a_backup(safeops: Any, check: Any) -> None:
    safeops.goal, safeops.reality = "Migrate the database", summary(checks=[check])
    assert safeops.ask().degraded


def test_what_objects_is_an_error_and_what_warns_is_not(safeops: Any) -> None:
    safeops.goal = "Push it"
    safeops.context = {"constraints": ["no_git_push"], "evidence": [{"result": {"ok": False}}]}
    assert {d.severity for d in safeops.ask().diagnostics} == {"error"}


def test_declared_care_may_mend_documents_out_of_line(safeops: Any) -> None:
    safeops.ssot["dms_share_alignment"] = "BROKEN"
    safeops.context = {"action_class": "remediation"}
    said = safeops.ask()
    assert said.payload.allowed_action == "WARN"
    assert {d.severity for d in said.diagnostics} == {"warn"}
    safeops.goal, safeops.context = "Clean up the notes", {}
    assert safeops.verdict() == "ABORT", "a goal that merely reads as care is none"


@pytest.mark.parametrize(
    "result",
    [{"age_hours": 2}, {"age_hours": True}, {"age_hours": "72"}, {"pages": 900}, {"age": 9_000}, {"next_run": OLD}],
)
def test_what_is_no_age_or_a_small_one_is_not_held_against_it(safeops: Any, result: dict[str, Any]) -> None:
    safeops.context = {"evidence": [{"result": {"ok": True} | result}]}
    assert safeops.verdict() == "PROCEED"


@pytest.mark.parametrize(
    ("result", "verdict"),
    [({"blast_radius": "large"}, "WARN"), ({"risk": "low"}, "PROCEED"), ({"size": "large"}, "PROCEED")],
)
def test_a_check_that_measures_a_large_impact_warns(safeops: Any, result: dict[str, Any], verdict: str) -> None:
    safeops.context = {"evidence": [{"result": {"ok": True} | result}]}
    assert safeops.verdict() == verdict
