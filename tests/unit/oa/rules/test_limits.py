"""Constraints that leave one kind of work, or ask for something first."""

from __future__ import annotations

from typing import Any

import pytest

FORBIDDEN, MAYBE, FREE = "ABORT", "WARN", "PROCEED"


@pytest.mark.parametrize(
    ("constraint", "goal", "verdict"),
    [
        ("read_only", "Create the berth list", FORBIDDEN),
        ("read-only", "Fix the broken link", FORBIDDEN),
        ("read_only", "Document the berths", FORBIDDEN),
        ("read_only", "Compare the berth lists that changed", FREE),
        ("readonly mode", "Inspect the log", FREE),
        ("only_docs", "Reword docs/berths.md", FREE),
        ("docs_only", "Rewrite the tide parser", FORBIDDEN),
        ("Only change files under docs/", "Implement the tide parser", FORBIDDEN),
        ("Keep changes within the documentation", "Tidy the harbour", MAYBE),
        ("only_docs", "Deploy the documentation", MAYBE),
        ("only_tests", "Add tests of the tide parser", FREE),
        ("only_tests", "Change the public API", FORBIDDEN),
        ("only tests", "Correct the readme", FORBIDDEN),
        ("staging_only", "Change the staging banner", FREE),
        ("staging_only", "Change the banner", MAYBE),
        ("freeze", "Deploy the tide service", FORBIDDEN),
        ("change_freeze", "Change the banner", MAYBE),
        ("change_freeze", "Inspect the log", FREE),
        ("code_freeze", "Implement the tide parser", FORBIDDEN),
        ("code_freeze", "Correct the readme", FREE),
        ("The freeze is lifted", "Deploy the tide service", FREE),
        ("no freeze", "Change the banner", FREE),
        ("approval_required", "Change the banner", MAYBE),
        ("approval_required", "Inspect the log", FREE),
        ("needs_backup", "Change the banner", MAYBE),
        ("Deploys require approval", "Change the banner", FREE),
        ("Deploys require approval", "Deploy the tide service", MAYBE),
        ("Ask before pushing", "Push the branch", MAYBE),
        ("Ask before pushing", "Change the banner", FREE),
        ("No approval is required", "Change the banner", FREE),
        ("dry_run_only", "Change the banner", MAYBE),
        ("dry_run_only", "Change the banner in a dry run", FREE),
        ("offline", "Push the branch", FORBIDDEN),
        ("offline", "Run the tests", FREE),
        ("no_network", "Install the chart package with pip", FORBIDDEN),
        ("no_network", "Install the buoy at the pier", FREE),
        ("Only the master may deploy on Sundays", "Deploy the tide service", MAYBE),
        ("Only the master may deploy on Sundays", "Change the banner", FREE),
        ("Only those who know the harbour and its tides should be asked", "Change the banner", FREE),
        ("no_db_writes", "Create the berth table", FORBIDDEN),
        ("no_db_writes", "Create a page with the harbour's history", FREE),
        ("no_git_push", "Implement push notifications", FREE),
        ("no_deploy", "Write the release notes", FREE),
        ("documentation_only", "Speed up the search endpoint", MAYBE),
        ("documentation_only", "Show the slow calls of the endpoint", FREE),
        ("no_schema_changes", "Split the berth table", FORBIDDEN),
        ("no_dependency_changes", "Upgrade the chart library", FORBIDDEN),
        ("no_destructive_ops", "Wipe the berth cache", FORBIDDEN),
        ("no_network", "Clone the chart repository", FORBIDDEN),
    ],
)
def test_a_limit_is_met_by_what_lies_outside_it(safeops: Any, constraint: str, goal: str, verdict: str) -> None:
    safeops.goal, safeops.context = goal, {"constraints": [constraint]}
    assert safeops.verdict() == verdict
    if verdict != FREE:
        assert constraint in safeops.ask().payload.safety_check_summary
