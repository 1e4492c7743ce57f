"""Text from inputs: cut, printable, and read as words that are meant."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import pytest

from pmagent.actors.oa.reasoning.rules.text import (
    QUOTED_CHARS_MAX,
    asserted,
    bounded,
    denied,
    is_printable,
    listed,
    quoted,
    stem,
    words,
)
from tests.support.hostile import CORPUS


@pytest.mark.parametrize("name", CORPUS)
def test_what_is_quoted_is_short_and_printable(name: str) -> None:
    said = quoted(CORPUS[name])
    assert said.isprintable()
    assert len(said) <= QUOTED_CHARS_MAX


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\nb", "a b"), ("\x1b[1m", "\\u001b[1m"), (None, "null"), (True, "true"), (7, "7"),
        (10**40, "a very large number"),
        (0.5, "0.5"), ([1, 2], "a list of 2"), ({"a": 1}, "an object of 1 keys"), ("x" * 300, "x" * 199 + "…"),
    ],
)  # fmt: skip
def test_values_are_quoted_as_what_they_are(value: Any, said: str) -> None:
    assert quoted(value) == said


def test_what_is_printable_does_not_grow_with_the_versions_of_unicode() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.ucd_3_2_0.category(char) != "Cn":  # every Python knows it
            assert is_printable(char) == (char == " " or unicodedata.category(char) not in hidden), hex(ord(char))
    assert is_printable("\U0001fadf \U0001c8d0 \u1c89 \ufffd")  # of later versions, and the one for what was lost
    assert not is_printable("a\u2029b")
    assert quoted("a\u3000b\u202ec\U000e0041") == "a b\\u202ec\\ue0041"


def test_pieces_beyond_a_number_are_counted_and_each_is_told_once() -> None:
    assert listed(["a", "b", "a"]) == "a; b"
    assert listed(map(str, range(100))).endswith("59; and 40 more")
    assert bounded("abc", 2) == "a…"


def test_words_are_found_in_keys_and_in_prose() -> None:
    assert words("dms_shareMismatch-count HTTPError don't 28B") == [
        "dms", "share", "mismatch", "count", "http", "error", "dont", "28", "b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "family",
    [
        "migrate migrates migrated migrating migration migrations", "drop drops dropped dropping",
        "push pushes pushing",
        "delete deletes deleted deleting deletion", "table tables", "fix fixes fixed", "bypass bypassed bypasses",
        "policy policies", "branch branches", "issue issues",
    ],
)  # fmt: skip
def test_forms_of_one_word_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_different_words_keep_different_stems() -> None:
    apart = [
        "fail",
        "file",
        "miss",
        "mine",
        "pass",
        "past",
        "push",
        "pull",
        "status",
        "state",
        "write",
        "wrote",
        "stale",
        "table",
        "error",
    ]
    assert len({stem(word) for word in apart}) == len(apart)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("push it", ["push", "it"]),
        ("do not push it, but merge", ["do", "but", "merge"]),
        ("no migration; drop it", ["drop", "it"]),
        ("without delay migrate the database", ["migrate", "the", "database"]),
        ("not only push", ["push"]),
        ("a non-destructive purge", ["a", "purge"]),
        ("never ever push the tag today", ["the", "tag", "today"]),
    ],
)
def test_what_is_denied_is_not_said(text: str, meant: list[str]) -> None:
    orders = {stem(word) for word in ("push", "migrate", "merge", "purge")}
    assert asserted(text, orders) == meant


@pytest.mark.parametrize(
    ("text", "no"), [("none", True), ("", True), ("no issues", True), ("0", True), ("nonesuch", False)]
)
def test_a_text_that_says_no_says_nothing(text: str, no: bool) -> None:
    assert denied(text) == no
