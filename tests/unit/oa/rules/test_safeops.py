"""SafeOPSDecision: objections abort, doubts warn, and each names the input that decided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases import each
from tests.support.rules_runs import OLD, RulesRun, summary

Fields = dict[str, Any]

STRICT: Fields = {"oa_state": {"mode": "STRICT"}}
BACKUP_CHECKS: list[Any] = [
    {"name": 5, "passed": True}, {"name": "Backup", "passed": None}, {"name": "Backup"}, "Backup", {"passed": True},
]
LISTED = {"missing": ["x"], "stale": ["y"], "errors": 3}


def asked(fields: Fields, evidence: Any = None) -> tuple[str, Any]:
    """Verdict and answer of a run on a healthy kernel but for these fields of it."""
    run = RulesRun("SafeOPSDecision")
    vars(run).update(fields)
    if evidence is not None:
        run.context = {**run.context, "evidence": evidence}
    return run.verdict(), run.ask()


def conditions(said: Any) -> list[str]:
    return [d.message for d in said.diagnostics if d.category == "condition"]


def declared(action: Any, **more: Any) -> Fields:
    return {"context": {"action_class": action, **more}}


def failing(tool: str, answer: Any = None) -> Fields:
    return {"tools": {tool: answer}}


RUNS: dict[str, tuple[list[Fields], str, str]] = {
    # statement: runs, verdict, and the words of the rationale
    "a tool that fails leaves the posture unverified": (
        [failing("oa.kernel_status"), failing("oa.reality_summary")], "blocked", "failed: no such file"),
    "a tool that is not allowed does, too": (
        [{"allowed": ["oa.kernel_status"]}, {"allowed": ["oa.reality_summary"]}], "blocked", " not in tools_allowed"),
    "a status that does not say how the kernel is proves nothing": (
        [failing("oa.kernel_status", one | {"note": "x"}) for one in ({}, {"error": "not JSON"}, {"phase": "7"})],
        "blocked", "oa.kernel_status does not say how the kernel is"),
    "a degraded kernel forbids work": (
        [{"mode": "DEGRADED", **declared(one)}
         for one in ("feature_work", "ops_blocks", "migrations", "phase_transitions")],
        "ABORT", "mode DEGRADED forbids "),
    "a degraded kernel lets care go on": (
        [{"mode": "DEGRADED", **declared(one)} for one in ("remediation", "diagnostic")], "WARN", "mode DEGRADED"),
    "an action class that does not exist aborts": (
        [declared(one) for one in ("deploy", "", 3, ["diagnostic"])], "ABORT", "oa_context.action_class is "),
    "an action class that is null is none": ([declared(None)], "PROCEED", "reads as feature_work"),
    "constraints of another shape are a doubt": (
        [{"context": {"constraints": one}} for one in ("no_git_push", [3], {"a": 1}, 3, [None, "no_db_writes"])],
        "WARN", "oa_context.constraints"),
    "what can be read of broken constraints still forbids": (
        [{"goal": "Push it", "context": {"constraints": [None, "no_git_push"]}}], "ABORT", "no_git_push"),
    "a declared migration writes whatever its goal says": (
        [{"goal": "Apply number 42", **declared("migrations", constraints=["no_db_writes"])}], "ABORT", "no_db_writes"),
    "declaring a migration to be something else does not lower its stakes": (
        [{"goal": "Migrate the database", **declared("diagnostic")}], "WARN", "migrations are high-impact work"),
    "commands that are no list are a doubt": (
        [{"context": {"commands": "make a"}}], "WARN", "not a list of commands"),
    "commands that a constraint may forbid are, too": (
        [{"context": {"commands": ["git push origin a"], "constraints": ["No pushes without approval"]}}],
        "WARN", "may apply"),
    "a passed check may list things": (
        [{"reality": summary(checks=[{"name": "Backup", "passed": True, "details": LISTED}])}], "PROCEED", ""),
    "an unknown key of the reality summary that is unsteady warns": (
        [{"reality": summary(recent_failures=2)}], "WARN", "recent_failures is 2"),
    "one that says failure aborts": ([{"reality": summary(failing_checks=2)}], "ABORT", "failing_checks is 2"),
    "fresh evidence counts in STRICT": (
        [{"reality": summary(timestamp=one), **STRICT}
         for one in ("2026-03-01T12:04:00Z", "2026-03-01T00:00:01Z", "2026-03-01T12:30:00+01:00")], "PROCEED", ""),
    "documents that are aligned, or not known to be otherwise, forbid nothing": (
        [{"ssot": {"dms_share_alignment": one}} for one in ("OK", "UNKNOWN")], "PROCEED", ""),
    "documents out of line forbid work, and so does care that nobody declared": (
        [{"ssot": {"dms_share_alignment": one}, "goal": goal}
         for one in ("BROKEN", "ERROR") for goal in ("Improve it", "Clean up the notes")],
        "ABORT", "dms_share_alignment is "),
    "a bootstrap that contradicts the summary degrades": (
        [{"bootstrap": {"branch": "main", "health": {"reality_green": False}}}], "ABORT", "mode DEGRADED"),
}  # fmt: skip

EVIDENCE: dict[str, tuple[list[Any], str, str]] = {
    # statement: what oa_context.evidence is, verdict, and the words of the rationale
    "a check without a result proves nothing": (
        [[{"source": "a"}], [{"source": "a", "result": None}], [{"result": {}}]], "WARN", "has no result"),
    "evidence of another shape is a doubt": (["all fine", {"ok": True}, [3]], "WARN", "oa_context.evidence"),
    "a check that failed and passes when run again is unsteady": (
        [[{"source": "a", "result": {"ok": ok}} for ok in (False, True)]], "WARN", "passes later"),
    "one that fails later, or another that passes, is not": (
        [[{"source": "a", "result": {"ok": ok}} for ok in (True, False)],
         [{"source": "a", "result": {"ok": False}}, {"source": "b", "result": {"ok": True}}]], "ABORT", "ok is false"),
    "an age that is small, or none, is not held against it": (
        [[{"result": {"ok": True} | one}] for one in (
            {"age_hours": 2}, {"age_hours": True}, {"age_hours": "72"}, {"pages": 900}, {"age": 9_000},
            {"next_run": OLD}, {"risk": "low"}, {"size": "large"})], "PROCEED", ""),
    "a check that measures a large impact warns": (
        [[{"result": {"ok": True, "blast_radius": "large"}}]], "WARN", "blast_radius is large"),
}  # fmt: skip


@each("statement", [*RUNS, *EVIDENCE])
def test_the_verdict_follows_from_the_inputs_and_names_them(statement: str) -> None:
    runs = [(each, None) for each in RUNS[statement][0]] if statement in RUNS else [
        ({}, each) for each in EVIDENCE[statement][0]
    ]
    _, verdict, words = RUNS.get(statement) or EVIDENCE[statement]
    wrong = []
    for fields, evidence in runs:
        given, said = asked(fields, evidence)
        if given != verdict or words not in said.rationale or bool(said.diagnostics) < (verdict == "WARN"):
            wrong.append((fields, evidence, given, said.rationale))
    assert wrong == []


def test_ordinary_work_on_a_healthy_kernel_proceeds_and_says_on_what(safeops: Any) -> None:
    said = safeops.ask()
    assert said.payload.allowed_action == "PROCEED"
    assert not said.degraded
    assert said.diagnostics == []
    for input_ in ("mode NORMAL", "reality green", "feature_work"):
        assert input_ in said.rationale


def test_care_on_a_degraded_kernel_has_conditions_and_is_degraded() -> None:
    for action in ("remediation", "diagnostic"):
        _, said = asked({"mode": "DEGRADED", **declared(action)})
        assert said.degraded
        assert conditions(said)


def test_a_backup_is_proven_by_a_named_and_passed_check_and_by_no_word_of_the_caller() -> None:
    goal = {"goal": "Migrate the database"}
    assert not asked(goal)[1].degraded
    assert all(asked(goal | {"reality": summary(checks=[check])})[1].degraded for check in BACKUP_CHECKS)
    assert asked(goal | {"reality": summary(checks=[])}, [{"source": "backup", "result": {"ok": True}}])[1].degraded


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        ("Run `rm -rf /srv/data`", "ABORT"), ("Run `git push origin main`", "WARN"), ("Run `make docs`", "PROCEED"),
        ("Please rm -rf the old build", "WARN"), ("Run `git push --force`", "ABORT"),
    ],
)  # fmt: skip
def test_commands_the_operation_states_are_held_to_a_blocks_bounds(safeops: Any, goal: str, verdict: str) -> None:
    safeops.goal = goal
    assert safeops.verdict() == verdict
    safeops.goal, safeops.context = "Do it", {"commands": [goal.split("`")[1]] if "`" in goal else []}
    assert safeops.verdict() == (verdict if "`" in goal else "PROCEED")


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


@each("results, verdict", [(HARD, "ABORT"), (SOFT, "WARN"), (FINE, "PROCEED")])
def test_results_of_the_callers_checks_count_by_what_their_keys_say(results: Any, verdict: str) -> None:
    for result in results:
        given, said = asked({}, [{"source": "a check", "result": result}])
        assert given == verdict, result
        assert said.degraded == (verdict != "PROCEED")
        if verdict != "PROCEED":
            assert "oa_context.evidence[0] (a check)" in said.rationale


def test_stale_evidence_is_none_in_strict_and_a_doubt_otherwise() -> None:
    stamps = (OLD, "2026-02-28T23:59:00Z", "2026-03-01T12:30:00Z", "yesterday", 5)
    runs: list[tuple[Fields, Any]] = [({"reality": summary(timestamp=stamp)}, None) for stamp in stamps]
    results = ({"ok": True, "last_run": OLD}, {"ok": True, "age_hours": 72}, {"stale": True})
    runs += [({}, [{"source": "a", "result": result}]) for result in results]
    for fields, evidence in runs:
        verdict, said = asked(fields, evidence)
        assert verdict == "WARN", (fields, evidence)
        assert "pmagent kernel refresh" in [d.remediation for d in said.diagnostics if d.category == "condition"]
        assert asked(fields | STRICT, evidence)[0] == "blocked", (fields, evidence)


def test_an_answer_that_is_blocked_is_degraded_and_says_what_blocks() -> None:
    for fields in (failing("oa.kernel_status"), {"reality": summary(timestamp=OLD), **STRICT}):
        _, said = asked(fields)
        assert said.degraded
        assert "block" in {d.severity for d in said.diagnostics}
    _, said = asked({"goal": "Migrate the database", "reality": summary(checks=[])})
    assert "about a backup" in said.rationale
    assert [d for d in said.diagnostics if "about a backup" in d.message]


def test_a_summary_without_a_time_is_told(safeops: Any) -> None:
    del safeops.reality["timestamp"]
    said = safeops.ask()
    assert said.payload.allowed_action == "PROCEED"
    assert "no timestamp" in said.diagnostics[0].message


def test_alignment_that_is_not_ok_is_a_diagnostic() -> None:
    for alignment in ("OK", "UNKNOWN", "BROKEN"):
        _, said = asked({"ssot": {"dms_share_alignment": alignment}})
        assert bool(said.diagnostics) == (alignment != "OK")


def test_disagreements_are_named_by_their_category() -> None:
    for claim in ({"phase": "8"}, {"branch": "feature"}, {"phase": 8, "mode": "NORMAL"}):
        verdict, said = asked({"context": {"claimed_kernel_state": claim}})
        assert (verdict, {d.category for d in said.diagnostics}) == ("PROCEED", {"kernel_mismatch"})
    _, said = asked({"bootstrap": {"branch": "main", "health": {"reality_green": False}}})
    assert "tri_surface_incoherence" in {d.category for d in said.diagnostics}


def test_what_objects_is_an_error_and_what_warns_is_not() -> None:
    _, said = asked({"goal": "Push it", "context": {"constraints": ["no_git_push"]}}, [{"result": {"ok": False}}])
    assert {d.severity for d in said.diagnostics} == {"error"}


def test_declared_care_may_mend_what_a_check_or_the_alignment_shows() -> None:
    assert asked(declared("remediation"), [{"result": {"ok": False}}])[0] == "WARN"
    verdict, said = asked({"ssot": {"dms_share_alignment": "BROKEN"}, **declared("remediation")})
    assert (verdict, {d.severity for d in said.diagnostics}) == ("WARN", {"warn"})
