"""The nodes of a syntax tree that are below others; pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final

from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "tree")
STATEMENTS: Final = frozenset(ast.stmt.__subclasses__())
FIELD_BY_FIELD: Final = {kind for kind in STATEMENTS if not {"body", "cases"}.isdisjoint(kind._fields)} | {
    ast.Module, ast.Lambda,
}  # fmt: skip
"""Kinds of nodes of which it matters in which field a node below stands."""
LEAVES: Final = frozenset((
    ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal,
))  # fmt: skip
_NO_NODES: Final = _LISTS.words("no_nodes")
"""Fields that hold names, operators and contexts, whatever node they are of."""
_WITH_GAPS: Final = frozenset(("keys", "kw_defaults"))
HOLDING: Final[dict[type[ast.AST], tuple[str, ...]]] = {
    kind: tuple(field for field in kind._fields if field not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind not in LEAVES
}


def children(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes right below a node, without operators, contexts and what imports name. They are kept with it, for
    several detectors ask."""
    if type(node) in LEAVES:
        return ()
    found: list[ast.AST] | None = node.__dict__.get("_below")
    if found is None:
        found = node.__dict__["_below"] = below(node)
    return found


_OFTEN: Final[dict[type[ast.AST], Callable[[Any], list[ast.AST]]]] = {
    ast.arg: lambda node: [node.annotation] if node.annotation is not None else [],
    ast.Assign: lambda node: [*node.targets, node.value],
    ast.Attribute: lambda node: [node.value],
    ast.AugAssign: lambda node: [node.target, node.value],
    ast.BinOp: lambda node: [node.left, node.right],
    ast.BoolOp: lambda node: node.values,
    ast.Call: lambda node: [node.func, *node.args, *node.keywords],
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Expr: lambda node: [node.value],
    ast.IfExp: lambda node: [node.test, node.body, node.orelse],
    ast.JoinedStr: lambda node: node.values,
    ast.List: lambda node: node.elts,
    ast.Return: lambda node: [node.value] if node.value is not None else [],
    ast.Subscript: lambda node: [node.value, node.slice],
    ast.Tuple: lambda node: node.elts,
    ast.UnaryOp: lambda node: [node.operand],
    ast.keyword: lambda node: [node.value],
}
"""The nodes below the most common kinds: half of the time that ``HOLDING`` takes."""


def below(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, as ``children`` has them, not kept."""
    often = _OFTEN.get(type(node))
    if often is not None:
        return often(node)
    held: dict[str, Any] = node.__dict__
    found: list[ast.AST] = []
    for name in HOLDING.get(type(node), ()):
        value = held.get(name)
        if type(value) is list:
            found += value if name not in _WITH_GAPS else [one for one in value if one is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found
