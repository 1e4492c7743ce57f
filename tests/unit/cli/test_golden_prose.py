"""Help and the common errors read as tests/golden/prose.txt says."""

from __future__ import annotations

import difflib

from tests.support.prose import GOLDEN, prose


def test_the_sentences_are_those_of_the_golden_file() -> None:
    changed = [*difflib.unified_diff(GOLDEN.read_text("utf-8").splitlines(), prose().splitlines(), lineterm="", n=0)]
    assert changed == [], "if it is meant: python -m tests.support.prose, and look at the diff"


def test_each_error_says_the_cause_and_the_next_step() -> None:
    said: dict[str, list[str]] = {}
    for line in GOLDEN.read_text("utf-8").splitlines():
        where, _, text = line.partition(" | ")
        if text.startswith(("error: ", "hint: ")):
            said.setdefault(where, []).append(text.partition(":")[0])
    assert len(said) > 100
    assert [where for where, kinds in said.items() if "error" in kinds and kinds != ["error", "hint"]] == []
