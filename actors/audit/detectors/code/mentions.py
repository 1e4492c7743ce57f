"""The words that code mentions: names, attributes, words of short texts, numbers; pure."""

from __future__ import annotations

import ast
import re
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
    keywords, and numbers."""

    __slots__ = ("attributes", "names", "read", "said")

    def __init__(self) -> None:
        self.attributes: set[str] = set()
        self.names: set[str] = set()
        self.read: set[str] = set()
        self.said: set[str] = set()

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
