"""Values that are computed and then not used, and functions that are only there by name; pure.

- A **stub** does nothing (``pass``, ``...``, a docstring, ``raise NotImplementedError``) or returns the same constant
  whatever it is given.
- A **dead store** gives a local name a computed value that nothing reads; a name that only dead stores read is dead as
  well, and so is a value that the next assignment in the same block replaces unread.
- A **dropped result** is a call, as a statement of its own, of one of the repository's functions that does nothing but
  return a value.
"""

from __future__ import annotations

import ast
import builtins
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import WITHIN, inside, last_name, walk
from pmagent.actors.audit.detectors.code.scopes import Function, Module
from pmagent.actors.audit.detectors.code.tree import children
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "usage")

_SEEN_THROUGH: Final = frozenset(("locals", "vars", "eval", "exec"))
_ACTING: Final = frozenset(("print", "open", "input", "exec", "eval", "setattr", "delattr", "__import__", "next"))
_HOLDING: Final = frozenset((*ast.stmt.__subclasses__(), ast.ExceptHandler, ast.match_case, ast.Module))
"""Kinds of nodes that hold statements."""
_CHANGING: Final = frozenset((
    ast.Raise, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Delete, ast.With, ast.Try, ast.Import,
    ast.ImportFrom, ast.FunctionDef, ast.Assert,
))  # fmt: skip
_STORED: Final = frozenset((ast.Attribute, ast.Subscript))
_TELLING: Final = frozenset((ast.Name, ast.Global, ast.Nonlocal, ast.AugAssign))
_ASSIGNING: Final = frozenset((ast.Assign, ast.AnnAssign))
_BUILTINS: Final = frozenset((*dir(builtins), *dir(math), *dir(statistics))) - _ACTING
_ASKING: Final = _LISTS.words("asking")
"""Methods and functions of libraries that change nothing."""


class Unused(NamedTuple):
    """A statement whose result nothing uses: its lines, what was computed, and where it stands in words."""

    first: int
    last: int
    says: str


class Calls(NamedTuple):
    """A call as a statement of its own, to be judged when all functions are known."""

    name: str
    first: int
    last: int


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


def may_waste(module: Module, function: Function) -> bool:
    """Whether a function can have dead stores at all: it has a value that its own body does not read, or gives a name
    values in a row."""
    heard = module.mentions[function]
    return heard.rewrites or any(
        name not in heard.read and not name.startswith("_") and any(_is_store(one.node) for one in found)
        for name, found in module.scopes[function].bindings.items()
    )


def _is_store(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
            return True
    return False


def dead_stores(function: Function | ast.Module) -> Iterator[Unused]:
    """The dead stores of a function, or of a module that is run and that nothing imports from."""
    outside, loads = set[str](), Counter[str]()
    for node in _of(_TELLING, _everything(function)):
        if isinstance(node, ast.Name):
            if node.id in _SEEN_THROUGH:
                return
            loads[node.id] += not _is_stored(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outside.update(node.names)
        elif isinstance(node, ast.AugAssign):
            loads[last_name(node.target)] += 1
    stores: dict[str, list[ast.Assign | ast.AnnAssign]] = {}
    for node in _of(_ASSIGNING, inside(function)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                stores.setdefault(name, []).append(node)
    dead: list[ast.Assign | ast.AnnAssign] = []
    names = [name for name in stores if name not in outside and not name.startswith("_")]
    while fresh := [name for name in names if not loads[name]]:
        names = [name for name in names if name not in fresh]
        for stmt in (one for name in fresh for one in stores[name]):
            dead.append(stmt)
            value = stmt.value if stmt.value is not None else stmt
            loads.subtract(node.id for node in walk(value) if isinstance(node, ast.Name))
    dead += [stmt for stmt in _overwritten(function) if stmt not in dead]
    for stmt in sorted(dead, key=lambda one: one.lineno):
        if any(isinstance(node, ast.Call | ast.BinOp | ast.Compare) for node in walk(stmt)):
            name = last_name(stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target)
            yield Unused(stmt.lineno, stmt.end_lineno or stmt.lineno, f"{name} is computed and never used")


def _of(kinds: frozenset[type[ast.AST]], nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """The nodes of some kinds: of most others there is nothing to ask."""
    return [node for node in nodes if type(node) in kinds]


def _everything(function: ast.AST) -> list[ast.AST]:
    """All nodes of a function, those of functions within too."""
    found = list(inside(function))
    for node in found:  # which grows
        if type(node) in WITHIN:
            found += inside(node)
    return found


def _overwritten(function: Function | ast.Module) -> Iterator[ast.Assign]:
    """Assignments whose value the next one to the same name replaces: in one block, and nothing between reads it."""
    for block in (one for node in _of(_HOLDING, (function, *inside(function))) for one in _blocks(node)):
        open_stores: dict[str, ast.Assign] = {}
        for stmt in block:
            if not isinstance(stmt, ast.Assign):
                open_stores.clear()
                continue
            for node in walk(stmt) if open_stores else ():
                if isinstance(node, ast.Name) and not _is_stored(node):
                    open_stores.pop(node.id, None)
                elif isinstance(node, ast.Yield | ast.Await):
                    open_stores.clear()
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    if name in open_stores:
                        yield open_stores[name]
                    open_stores[name] = stmt


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if block:
            yield block


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def calls_alone(module: Module) -> Iterator[Calls]:
    """The calls whose result is dropped where they stand, or asked for by a condition under which nothing is done."""
    for call, site in module.calls():
        if not isinstance(call.func, ast.Name):
            continue
        match site.stmt:
            case ast.If(test=test, body=body, orelse=[]):
                dropped = test is call and does_nothing(body)
            case ast.Expr(value=value):
                dropped = value is call
            case _:
                dropped = False
        if dropped:
            yield Calls(call.func.id, call.lineno, call.end_lineno or call.lineno)


def returns_only(function: Function) -> bool:
    """Whether a function does nothing but return a value: what it calls and assigns changes nothing outside."""
    if isinstance(function, ast.AsyncFunctionDef) or function.decorator_list:
        return False
    returned, todo = False, list[Any](children(function))
    while todo:
        node = todo.pop()
        kind = type(node)
        if kind in _CHANGING or (kind in _STORED and type(node.ctx) is ast.Store):
            return False
        if kind is ast.Call:
            called = node.func
            if type(called) is ast.Name and called.id not in _BUILTINS:
                return False
            if type(called) is ast.Attribute and called.attr not in _ASKING:
                return False
        elif kind is ast.Return:
            returned = returned or node.value is not None
        if kind not in WITHIN:
            todo += children(node)
    return returned
