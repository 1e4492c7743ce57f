"""The words that code mentions: names, attributes, words of short texts, numbers; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, Final

from pmagent.actors.audit.detectors.code.tree import FIELD_BY_FIELD

_TEXT_CHARS: Final = 200
"""A longer text mentions no names."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_FILE: Final = re.compile(r"[\w-]+\.[a-z]{2,7}\b|\A\d+(?:\.\d+)?\Z")
"""The name of a file in a text, or a text that is a number."""
_WITH_BLOCKS: Final = frozenset((*FIELD_BY_FIELD, ast.ExceptHandler, ast.match_case)) - {ast.Lambda}
SAYING: Final = _WITH_BLOCKS | {ast.keyword, ast.BinOp}
"""Kinds of nodes that say something beside what is below them."""


class Mentions:
    """The words of a function's body and annotations, or of a module's own statements: the names that they ``read``;
    in ``names`` ``attributes`` that are read, and of short texts what may be a name; in ``said`` names that they give,
    keywords, and numbers. ``rewrites``: a name may be given a value twice in a row."""

    __slots__ = ("attributes", "names", "read", "rewrites", "said")

    def __init__(self) -> None:
        self.attributes: set[str] = set()
        self.names: set[str] = set()
        self.read: set[str] = set()
        self.said: set[str] = set()
        self.rewrites = False

    def hear(self, node: Any) -> None:
        """Hear what a node itself says, one of ``SAYING``."""
        kind = type(node)
        if kind is ast.keyword:
            self.said.update((node.arg,) if node.arg else ())
        elif kind is ast.BinOp:
            if type(node.op) is ast.Mult:
                sides = [getattr(side, "value", None) for side in (node.left, node.right)]
                left, right = (one if isinstance(one, int) else None for one in sides)
                if left is not None and right is not None and type(node.left) is type(node.right) is ast.Constant:
                    self.said.update(map(str, (left, right, left * right)))
        elif kind is ast.ClassDef:
            self.said.add(node.name)
        if kind in _WITH_BLOCKS and not self.rewrites:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if block and rewrites(block):
                    self.rewrites = True

    def constant(self, value: Any) -> None:
        """Hear a constant."""
        kind = type(value)
        if kind is str:
            if value.isidentifier() and value.isascii():
                self.names.add(value)
            elif len(value) < _TEXT_CHARS:
                self.names.update(_WORD.findall(value))
                if "." in value or value.isdecimal():
                    self.said.update(_FILE.findall(value))
        elif kind is int:
            self.said.add(str(value)[:20])
        elif kind is float:
            self.said.add(f"{value:g}")


def rewrites(block: Sequence[ast.stmt]) -> bool:
    """Whether two assignments of a row of them give the same name a value."""
    row: set[str] = set()
    for stmt in block if len(block) > 1 else ():
        if type(stmt) is not ast.Assign:
            row.clear()
        elif len(stmt.targets) == 1 and type(target := stmt.targets[0]) is ast.Name:
            if target.id in row:
                return True
            row.add(target.id)
    return False
