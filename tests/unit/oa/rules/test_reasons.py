"""Each fact once, what explains first; and what mends it."""

from __future__ import annotations

from typing import Any

REFRESH = "pmagent kernel refresh"
RED = {"reality_green": False, "checks": [{"name": "Tide Gauge", "passed": False, "message": "dry"}]}


def test_a_failed_check_is_told_once_and_explains_reality_and_mode(safeops: Any) -> None:
    safeops.mode, safeops.reality = "DEGRADED", RED
    said = safeops.ask()
    assert said.rationale == "reality is not green: only GuardFailureInterpreter runs; failed check: Tide Gauge"
    assert said.diagnostics[0].remediation == f"mend what Tide Gauge checks, then: {REFRESH}"


def test_what_kernel_and_envelope_both_say_is_told_once(safeops: Any) -> None:
    safeops.mode = "DEGRADED"
    safeops.context = {"claimed_kernel_state": {"mode": "DEGRADED"}}
    safeops.tools["oa.kernel_status"] = {
        "mode": "DEGRADED", "reality_green": True,
        "reasons": ["branch: share/A.json says main, share/B.json says quay", "share/H.json declares DEGRADED"],
        "interpretation": {"recommended_commands": [REFRESH, "when the cause is mended, set mode to NORMAL"]},
    }
    said = safeops.ask()
    assert said.payload.safety_check_summary == (
        "mode DEGRADED forbids feature_work: branch: share/A.json says main, share/B.json says quay; "
        "share/H.json declares DEGRADED"
    )
    assert said.diagnostics[-1].remediation == f"{REFRESH}; when the cause is mended, set mode to NORMAL"


def test_a_mode_that_nothing_explains_is_told_with_its_source(safeops: Any) -> None:
    safeops.mode = "DEGRADED"
    assert "kernel_state_ref.mode is DEGRADED" in safeops.ask().rationale


def test_a_worse_mode_is_told_beside_the_reasons_of_a_better_one(safeops: Any) -> None:
    safeops.reality, safeops.context = RED, {"claimed_kernel_state": {"mode": "BLOCKED"}}
    said = safeops.ask()
    assert "failed check: Tide Gauge; the caller claims mode BLOCKED" in said.rationale


def test_what_a_kernel_recommends_that_no_block_may_hold_is_not_passed_on(safeops: Any) -> None:
    told = {"mode": "BLOCKED", "interpretation": {"recommended_commands": ["rm -rf /", 3, " ", REFRESH]}}
    safeops.tools["oa.kernel_status"] = told
    assert "rm -rf" not in str(safeops.ask().diagnostics[0].remediation)
    assert REFRESH in str(safeops.ask().diagnostics[0].remediation)


def test_a_transition_names_each_thing_that_is_missing_once(transition: Any) -> None:
    transition.reality = {**RED, "reality_green": True}
    transition.ssot = {**transition.ssot, "dms_share_alignment": "BROKEN", "phases": {"7": {"blockers": ["paint"]}}}
    assert transition.ask().payload.missing_criteria == [
        "failed check: Tide Gauge", "mode DEGRADED forbids phase_transitions",
        "oa.ssot_surface.phases.7.blockers: paint", "oa.ssot_surface.dms_share_alignment is BROKEN",
    ]


def test_a_key_that_summary_and_tool_share_counts_once(safeops: Any) -> None:
    safeops.reality = {**safeops.reality, "recent_failures": 2}
    assert safeops.ask().payload.safety_check_summary == "on conditions: oa.reality_summary.recent_failures is 2"
