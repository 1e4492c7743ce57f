"""Hints that stand in decisions are computed by code of our own, the same with every version of every library."""

from __future__ import annotations

import ast
from pathlib import Path

from pmagent.contracts import shape
from pmagent.contracts.shape import NAMES_SHOWN, nearest
from tests.support.cases import each

TOOLS = ["echo", "ls", "cat", "node", "python", "poetry", "pnpm", "git"]


@each(
    "name, found",
    [("gti", "git"), ("it", "git"), ("giit", "git"), ("gut", "git"), ("pyton", "python"), ("nmpm", "pnpm"),
     ("poerty", "poetry"), ("LS", ""), ("bash", ""), ("", ""), ("\U0001f600", ""), ("c" * 100_000, "")],
)  # fmt: skip
def test_the_name_is_found_that_was_meant_or_none(name: str, found: str) -> None:
    assert nearest(name, TOOLS) == (f"did you mean {found}?" if found else f"there are: {', '.join(TOOLS)}")


def test_of_names_as_near_as_each_other_the_first_is_meant() -> None:
    assert nearest("cat", ["bat", "hat"]) == "did you mean bat?"
    assert nearest("cat", ["hat", "bat"]) == "did you mean hat?"


def test_where_many_are_known_and_none_is_near_some_are_named() -> None:
    names = [f"name-{number:03}" for number in range(100)]
    assert nearest("x", names) == f"there are: {', '.join(names[:NAMES_SHOWN])}, …"
    assert nearest("x", []) == "there are: "


@each("number", range(len("whitelist_tools")))
def test_one_slip_anywhere_is_forgiven(number: int) -> None:
    name = "whitelist_tools"
    left_out, doubled = name[:number] + name[number + 1 :], name[:number] + name[number] + name[number:]
    swapped = name[:number] + name[number : number + 2][::-1] + name[number + 2 :]
    for slipped in (left_out, doubled, swapped, name[:number] + "X" + name[number + 1 :]):
        assert nearest(slipped, ["retries", name, "paths"]) == f"did you mean {name}?"


def test_nothing_is_guessed_by_a_library() -> None:
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(Path(shape.__file__).read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert "difflib" not in imported
