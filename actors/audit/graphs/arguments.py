"""The arguments that a call gives to what it calls; pure."""

from __future__ import annotations

import ast
from typing import Final

import msgspec

from pmagent.actors.audit.graphs.scope import Scope
from pmagent.actors.audit.graphs.values import Value

_SPELLED_MAX: Final = 120


class Arguments(msgspec.Struct, eq=False):
    """``open``: there may be more, by ``*`` or ``**`` of what is not known. ``unknown``: nobody is seen to call this,
    so what is not given is not known either. ``node`` and ``scope``: the call, and where it stands."""

    args: list[Value] = []
    named: dict[str, Value] = {}
    open: bool = False
    unknown: bool = False
    node: ast.Call | None = None
    scope: Scope | None = None

    @property
    def line(self) -> int:
        """Where the call stands."""
        return self.node.lineno if self.node is not None else 0

    def get(self, place: int, name: str) -> Value | None:
        """An argument by its place or by its name."""
        if name in self.named:
            return self.named[name]
        return self.args[place] if place < len(self.args) else None

    def argument(self, place: int, name: str) -> ast.expr | None:
        """The expression of an argument."""
        if self.node is None:
            return None
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        return self.node.args[place] if place < len(self.node.args) else None

    def spelled(self, place: int, name: str) -> str:
        """An argument as the program has it, if it is a name, dotted or subscripted too; else its kind in brackets."""
        return _spelled(self.argument(place, name))


def _spelled(node: ast.expr | None, depth: int = 0) -> str:
    if node is None or depth > 8:
        return "" if node is None else "…"
    if isinstance(node, ast.Name):
        whole = node.id
    elif isinstance(node, ast.Attribute):
        whole = f"{_spelled(node.value, depth + 1)}.{node.attr}"
    elif isinstance(node, ast.Subscript):
        whole = f"{_spelled(node.value, depth + 1)}[{_spelled(node.slice, depth + 1)}]"
    elif isinstance(node, ast.Call):
        whole = f"{_spelled(node.func, depth + 1)}(…)"
    elif isinstance(node, ast.Tuple):
        whole = ", ".join(_spelled(one, depth + 1) for one in node.elts[:4])
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | int):
        whole = repr(node.value)[:_SPELLED_MAX]
    else:
        whole = f"<{type(node).__name__.lower()}>"
    return whole if len(whole) <= _SPELLED_MAX else whole[: _SPELLED_MAX - 1] + "…"
