"""The list of planted bugs fits the tree: each can be planted, and its test exists. ``make planted`` tries them."""

from __future__ import annotations

import re
from collections import Counter

from tests.support.bugs import ROOT, bugs
from tests.support.effort import costly, named_by_night

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
    """Whether a file has this test, given as ``file::test``, or its class, which may inherit the test, as
    ``file::Class::test``; both also with ``[case]``."""
    path, name, *_ = test.partition("[")[0].split("::")
    file = ROOT / path
    text = file.read_text("utf-8") if file.is_file() else ""
    return re.search(rf"^(?:(?:async )?def|class) {re.escape(name)}\b", text, re.MULTILINE) is not None


def test_each_bug_names_a_test_that_exists() -> None:
    assert [bug.id for bug in bugs() if not exists(bug.test)] == []


def test_tests_that_are_left_out_exist_and_stand_once_in_order() -> None:
    for named in (named_by_night(), costly()):
        assert named == sorted(set(named))
        assert [test for test in named if not exists(test)] == []


def test_the_list_covers_every_area() -> None:
    listed = bugs()
    assert len(listed) >= 159
    assert len({bug.id for bug in listed}) == len(listed)
    assert {bug.area for bug in listed} == AREAS
    assert sum(bug.fresh for bug in listed) >= FRESH
    assert min(Counter(bug.area for bug in listed).values()) >= 3
