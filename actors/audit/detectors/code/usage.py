"""Functions that are only there by name; pure.

A **stub** does nothing (``pass``, ``...``, a docstring, ``raise NotImplementedError``) or returns the same constant
whatever it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pmagent.actors.audit.detectors.code.names import last_name
from pmagent.actors.audit.detectors.code.scopes import Function


def is_stub(function: Function) -> bool:
    """Whether a function is there by name alone; abstract and overloaded ones are declarations, and none."""
    if any(last_name(one) in {"abstractmethod", "overload"} for one in function.decorator_list):
        return False
    body = [one for one in function.body if not _is_text(one)]
    match body:
        case []:
            return True
        case [ast.Return(value=None)] | [ast.Pass()]:
            return True
        case [ast.Return(value=value)]:
            return _is_constant(value)
        case [*_, ast.Raise(exc=ast.expr() as raised)]:
            return last_name(raised) == "NotImplementedError" and len(body) == 1
    return False


def does_nothing(body: Iterable[ast.stmt]) -> bool:
    """Whether statements are there by their form alone."""
    return all(map(_is_text, body))


def _is_text(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Pass) or (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))


def _is_constant(value: ast.expr | None) -> bool:
    """A literal without anything computed in it; a bare truth value or name is what predicates and getters return."""
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant():
            return True
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return all(_is_constant(one) for one in parts)
        case ast.Dict(values=parts):
            return all(_is_constant(one) for one in parts)
    return False
