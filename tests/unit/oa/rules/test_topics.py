"""A goal that speaks of an act does not do it; whatever does it after all, counts."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.oa.reasoning.rules.topics import done, looks_only

ORDERS = ("drop", "migrat", "delet", "releas")


@pytest.mark.parametrize(
    "goal",
    [
        "Document how to drop a table",
        "Explain why dropping a table is a bad idea",
        "Review the plan of the harbour ledger's migration",
        "Teach the crew how to drop a table",
        "Find out how to drop a table",
        "Explain why we drop tables",
        "List how one can drop tables",
        "Prepare talking points about the migration",
        "Publish what the deletion incident taught",
        "A careful analysis of the record of deleted ships",
        "Write a section on how to drop a table",
        "Add a page about the migration",
        "Draft the post-mortem of the deleted bucket",
        "List what a migration would touch; do not delete anything",
        "Update the migration guide",
        "Improve the release notes",
    ],
)
def test_a_topic_is_not_done(safeops: Any, goal: str) -> None:
    assert not {"drop", "dropping", "migration", "deleted", "delete", "release"} & set(done(goal, ORDERS))
    safeops.goal = goal
    assert safeops.verdict() == "PROCEED"


@pytest.mark.parametrize(
    "goal",
    [
        "Document the plan and drop the table",
        "Document the plan, drop the table",
        "Document it: drop the table",
        "Document the plan, then drop the table",
        "Read the list to drop the table",
        "Review the table before dropping it",
        "Review everything while dropping the table",
        "Write a script that drops the table",
        "Drop the table that the report describes",
        "Drop table notes",
        "Review the plan or just drop the table",
        "Nobody reads it any more. Drop the table. Report.",
        "Review the migration of the harbour ledger",
        "Drop the table and learn how to do it",
        "List the berths & drop the table",
        "List the berths and after that drop the table",
        "Describe the deletion, perform it",
        "Count the berths so that we can drop the table",
        "Document that you drop the table now",
        "Show me you can drop the table",
    ],
)
def test_what_is_done_beside_the_telling_counts(safeops: Any, goal: str) -> None:
    safeops.goal = goal
    assert safeops.verdict() == "WARN"
    assert "high-impact" in safeops.ask().rationale or "destroys" in safeops.ask().rationale


@pytest.mark.parametrize(
    ("goal", "kept"),
    [
        ("Document the berth plan", True),
        ("Describe the berth plan in docs/berths.md", True),
        ("Describe the berth plan", False),
        ("List the berths", False),
    ],
)
def test_a_text_that_is_kept_is_written(goal: str, kept: bool) -> None:
    assert ("write" in done(goal, ORDERS, "write")) == kept
    assert "write" not in done(goal, ORDERS)


@pytest.mark.parametrize(
    ("goal", "looks"),
    [
        ("Analyse the failed releases", True),
        ("Inspect the log, compare the sums", True),
        ("Inspect the log and delete it", False),
        ("Inspect the log, delete it", False),
        ("Describe the log", False),
        ("List the berths into docs/list.md", False),
        ("Paint the quay", False),
        ("", False),
    ],
)
def test_looking_is_told_from_work(safeops: Any, goal: str, looks: bool) -> None:
    assert looks_only(goal) == looks
    safeops.goal, safeops.mode = goal or "-", "DEGRADED"
    assert safeops.verdict() == ("WARN" if looks else "ABORT")
