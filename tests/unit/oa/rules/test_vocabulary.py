"""The vocabulary is whole and used, and its matcher reads words that are meant."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from pmagent.actors.oa.reasoning.rules import vocabulary
from pmagent.actors.oa.reasoning.rules.vocabulary import asserted, checked, denied, stem, stems, table, words
from pmagent.service import cache
from tests.support.cases import each

FOLDER = files(vocabulary.__package__)


def test_each_list_is_used_and_each_list_that_is_used_is_there() -> None:
    there = tomllib.loads((FOLDER / "vocabulary.toml").read_text("utf-8"))
    whole = {"constraints.acts", "constraints.things", "constraints.implied", "constraints.implied_by"}
    used, told = set(), set()
    for module in FOLDER.iterdir():
        source = module.read_text("utf-8") if module.name.endswith(".py") else ""
        for name, path in re.findall(r'(\w+)(?:: Final)? = table\("([\w.]+)"\)', source):
            if path not in whole:
                used |= {f"{path}.{each}" for each in re.findall(rf"\b{name}\.(\w+)", source)}
        used |= {f"{path}.{each}" for path, each in re.findall(r'table\("(\w+)"\)\.(\w+)', source)}
        used |= set(re.findall(r'(?:rows|table|texts)\("([\w]+\.\w+)"\)', source))
    for path, lists in there.items():
        told |= {f"{path}.{name}" for name in lists}
    assert used == told
    acts, things = table("constraints.acts"), table("constraints.things")
    for implied in table("constraints.implied").values():
        assert implied <= acts.keys() | things.keys()
    assert {*table("constraints.implied"), *table("limits").changing, *table("limits").sent} <= acts.keys()


@each("content", ['[a]\nb = "word word"', '[a]\nb = ""', "[a]\nb = []", '[a]\nb = "Word"', '[a.b]\nc = ["to-do"]'])
def test_a_list_that_is_empty_or_holds_no_plain_words_is_named(content: str) -> None:
    with pytest.raises(ValueError, match=r"a\.b"):
        checked(content)


def test_other_words_are_other_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "PLACE", str(tmp_path))
    for package in ("actors", "contracts", "events", "projections"):
        (tmp_path / package).mkdir()
    digests = set()
    for word in ("drop", "keep"):
        (tmp_path / "actors" / "vocabulary.toml").write_text(f'word = "{word}"')
        digests.add(cache.code_digest.__wrapped__())
    assert len(digests) == 2


def test_words_are_found_in_keys_and_in_prose() -> None:
    assert words("dms_shareMismatch-count HTTPError don't 28B") == [
        "dms", "share", "mismatch", "count", "http", "error", "dont", "28", "b",
    ]  # fmt: skip


@each("family", [
    "migrate migrates migrated migrating migration migrations", "drop drops dropped dropping", "push pushes pushing",
    "delete deletes deleted deleting deletion", "table tables", "fix fixes fixed", "bypass bypassed bypasses",
    "policy policies", "branch branches", "issue issues",
])  # fmt: skip
def test_forms_of_one_word_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_different_words_keep_different_stems() -> None:
    apart = "fail file miss mine pass past push pull status state write wrote stale table error"
    assert len(stems(apart)) == len(apart.split())


@each("text, meant", [
    ("push it", ["push", "it"]),
    ("do not push it, but merge", ["do", "but", "merge"]),
    ("no migration; drop it", ["drop", "it"]),
    ("without delay migrate the database", ["migrate", "the", "database"]),
    ("not only push", ["push"]),
    ("a non-destructive purge", ["a", "purge"]),
    ("never ever push the tag today", ["the", "tag", "today"]),
])
def test_what_is_denied_is_not_said(text: str, meant: list[str]) -> None:
    orders = stems("push migrate merge purge")
    assert asserted(text, orders) == meant


@each("text, no", [("none", True), ("", True), ("no issues", True), ("0", True), ("nonesuch", False)])
def test_a_text_that_says_no_says_nothing(text: str, no: bool) -> None:
    assert denied(text) == no
