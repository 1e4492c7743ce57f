"""The list of planted bugs fits the tree: each can be planted, and its test exists. ``make planted`` tries them."""

from __future__ import annotations

import re
from collections import Counter

from tests.support.bugs import ROOT, bugs
from tests.support.effort import named_by_night

AREAS = {
    "log", "recovery", "engine", "gate", "ledger", "scheduler", "OA policy", "sandbox", "egress rules", "proxies",
    "redaction", "trust", "PLA warden", "PLA link", "PLA firmware", "console", "judges", "replay",
    "commands", "documents", "sources", "checks", "guests", "lease",
}  # fmt: skip
FRESH = 37
"""So many of the list are by a reader who came to the code new, and are marked."""


def test_each_bug_can_be_planted_in_one_place() -> None:
    found = {bug.id: (ROOT / bug.file).read_text("utf-8").count(bug.old) for bug in bugs()}
    assert [name for name, count in found.items() if count != 1] == []
    assert [bug.id for bug in bugs() if bug.old == bug.new] == []


def exists(test: str) -> bool:
    """Whether a file has this test, given as ``file::test`` or ``file::test[case]``."""
    path, _, name = test.partition("[")[0].partition("::")
    file = ROOT / path
    text = file.read_text("utf-8") if file.is_file() else ""
    return re.search(rf"^(?:async )?def {re.escape(name)}\(", text, re.MULTILINE) is not None


def test_each_bug_names_a_test_that_exists() -> None:
    assert [bug.id for bug in bugs() if not exists(bug.test)] == []


def test_what_is_named_for_the_night_exists_and_stands_once_in_order() -> None:
    named = named_by_night()
    assert named == sorted(set(named))
    assert [test for test in named if not exists(test)] == []


def test_the_list_covers_every_area() -> None:
    listed = bugs()
    assert len(listed) >= 159
    assert len({bug.id for bug in listed}) == len(listed)
    assert {bug.area for bug in listed} == AREAS
    assert sum(bug.fresh for bug in listed) >= FRESH
    assert min(Counter(bug.area for bug in listed).values()) >= 3
