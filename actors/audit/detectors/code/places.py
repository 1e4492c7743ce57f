"""Where a path of the audited code leads: into a temporary directory, into the working directory, or who knows; pure.

Only simple assignments are followed; what cannot be told is ``unknown``, and never counted against anybody.
"""

from __future__ import annotations

import ast
import re
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.code.names import bindings, dotted, keyword, last_name, own_function
from pmagent.actors.audit.detectors.code.scopes import Binding, Module, Scope
from pmagent.actors.audit.detectors.code.strings import is_constant, pieces
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "places")

Where = Literal["temporary", "working", "fixed", "unknown"]


class Place(NamedTuple):
    """``sure``: how sure that is. ``param``: it is this parameter of its function, which the caller gives."""

    where: Where
    sure: float = 1.0
    param: str = ""


UNKNOWN: Final = Place("unknown", 0.0)
_TEMPORARY: Final = frozenset(
    f"tempfile.{name}" for name in ("mkdtemp", "TemporaryDirectory", "gettempdir", "NamedTemporaryFile", "mktemp")
) | {"aiofiles.tempfile.TemporaryDirectory", "anyio.TemporaryDirectory", "anyio.mkdtemp", "anyio.gettempdir"}
_WORKING: Final = frozenset({"os.getcwd", "os.curdir", "pathlib.Path.cwd", "os.path.curdir"})
_TELLING: Final = _LISTS.pattern("telling")
_SAME: Final = _LISTS.words("same")
"""Calls whose result leads where their first argument, or what they are a method of, leads."""

_STEPS_MAX: Final = 200


class _Follower:
    """Follows an expression to where it comes from; a bound on steps, so that no web of names is followed for ever."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.steps = _STEPS_MAX

    def place(self, expression: ast.expr | None, scope: Scope, depth: int = 0) -> Place:
        self.steps -= 1
        if expression is None or depth > 12 or self.steps < 0:
            return UNKNOWN
        match expression:
            case ast.Name() | ast.Attribute():
                return self._named(expression, scope, depth)
            case ast.Call():
                return self._called(expression, scope, depth)
            case ast.BinOp(left=left, op=ast.Div() | ast.Add()):
                return self.place(left, scope, depth + 1)
            case ast.Constant(value=str(text)):
                return _literal(text)
            case ast.JoinedStr():
                return self._string(expression, scope, depth)
            case ast.BoolOp(values=values):
                return self._any([self.place(value, scope, depth + 1) for value in values])
            case ast.IfExp(body=body, orelse=orelse):
                return self._any([self.place(body, scope, depth + 1), self.place(orelse, scope, depth + 1)])
            case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
                return self.place(value, scope, depth + 1)
        return UNKNOWN

    def _named(self, expression: ast.Name | ast.Attribute, scope: Scope, depth: int) -> Place:
        found = [one for one in bindings(scope, expression) if not (one.kind == "value" and _is_none(one.value))]
        name = dotted(self.module, expression, scope) if len(found) < 2 else ""
        known = _by_name(name)
        if known is not None:
            return known
        if isinstance(expression, ast.Name) and expression.id == "__file__":
            return Place("working", 0.6)
        if name.startswith("builtins."):
            return UNKNOWN
        if not found and isinstance(expression, ast.Attribute):
            place = self.place(expression.value, scope, depth + 1)  # workspace.path: where the workspace is
        else:
            place = self._any([self._bound(binding, last_name(expression), depth) for binding in found])
        if place.where == "unknown" and _TELLING.search(last_name(expression)):
            return Place("temporary", 0.6, place.param)
        return place

    def _bound(self, binding: Binding, name: str, depth: int) -> Place:
        match binding.kind:
            case "value" | "with":
                return self.place(binding.value, binding.scope, depth + 1)
            case "param":
                annotation = getattr(binding.node, "annotation", None)
                if name in {"tmp_path", "tmpdir", "tmp_path_factory"}:
                    return Place("temporary", 0.9, name)
                if annotation is not None and last_name(annotation) == "TemporaryDirectory":
                    return Place("temporary", 0.9, name)
                default = self.place(binding.value, binding.scope, depth + 1)
                if default.where in {"working", "fixed"}:  # only what a caller who says nothing gets
                    return Place(default.where, min(default.sure, 0.6), name)
                return Place("unknown", 0.0, name)
        return UNKNOWN

    def _called(self, call: ast.Call, scope: Scope, depth: int) -> Place:
        known = _by_name(dotted(self.module, call.func, scope))
        if known is not None:
            inside = keyword(call, "dir")
            if inside is not None and self.place(inside, scope, depth + 1).where == "working":
                return Place("temporary", 0.7)  # a fresh directory, though below the working directory
            return known
        written = last_name(call.func)
        if written in _SAME:
            if isinstance(call.func, ast.Attribute) and not _is_module(self.module, call.func.value, scope):
                if written in {"enter_context", "enter_async_context"} and call.args:
                    return self.place(call.args[0], scope, depth + 1)
                return self.place(call.func.value, scope, depth + 1)
            return self.place(call.args[0], scope, depth + 1) if call.args else UNKNOWN
        function = own_function(self.module, call.func, scope)
        inner = None if function is None else self.module.scopes.get(function)
        if inner is not None and inner.returned:
            place = self._any([self.place(value, inner, depth + 2) for value in inner.returned[:4]])
            return place._replace(param="")
        if _TELLING.search(written):
            return Place("temporary", 0.6)
        return UNKNOWN

    def _string(self, expression: ast.expr, scope: Scope, depth: int) -> Place:
        found = pieces(self.module, expression, scope)
        if not found:
            return UNKNOWN
        if not isinstance(found[0], str):
            return self.place(found[0], scope, depth + 1)
        literal = _literal(found[0])
        return literal if literal.where != "working" or "/" in found[0] else Place("working", 0.7)

    def _any(self, places: list[Place]) -> Place:
        """The place that several ways to get a value give together: one temporary way is taken for the intention."""
        told = [place for place in places if place.where != "unknown"]
        param = next((place.param for place in places if place.param), "")
        if not told:
            return Place("unknown", 0.0, param)
        temporary = [place for place in told if place.where == "temporary"]
        if temporary:
            best = max(place.sure for place in temporary)
            return Place("temporary", best if len(temporary) == len(places) else min(best, 0.7), param)
        first = min(told, key=lambda place: place.sure)
        return (
            first._replace(param=param) if len(told) == len(places) else Place(first.where, min(first.sure, 0.7), param)
        )


def place_of(module: Module, expression: ast.expr | None, scope: Scope) -> Place:
    """Where ``expression`` leads."""
    return _Follower(module).place(expression, scope)


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _by_name(name: str) -> Place | None:
    if name.removesuffix(".name").removesuffix("()") in _TEMPORARY:
        return Place("temporary")
    if name.startswith(tuple(f"{one}()" for one in _TEMPORARY)):
        return Place("temporary")
    if name.removesuffix("()") in _WORKING or name.endswith("Path.cwd"):
        return Place("working")
    return None


def _literal(text: str) -> Place:
    if text.startswith(("/tmp", "/var/tmp", "/dev/shm")):  # noqa: S108 - what the audited code says
        return Place("fixed", 0.6)  # among temporary files, though everybody knows where
    if text.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", text):
        return Place("fixed", 0.9)
    return Place("working", 0.9)


def _is_module(module: Module, owner: ast.expr, scope: Scope) -> bool:
    """Whether ``owner`` names a module (``os.path``) rather than a value."""
    name = dotted(module, owner, scope)
    return name in {"os", "os.path", "posixpath", "ntpath", "pathlib"}


def is_own_file(module: Module, expression: ast.expr, scope: Scope) -> bool:
    """Whether it is a file whose name is constant, or its content: ``open("version.py").read()``, also where a name
    is bound to it. Such a file belongs to the project, most likely."""
    for node in list(ast.walk(expression))[:_STEPS_MAX]:
        if isinstance(node, ast.Call) and dotted(module, node.func, scope) in {"builtins.open", "io.open"}:
            return bool(node.args) and is_constant(module, node.args[0], scope)
        if isinstance(node, ast.Name):
            opened = [one for one in bindings(scope, node) if one.kind in {"with", "value"} and one.value is not None]
            if opened and isinstance(opened[-1].value, ast.Call) and opened[-1].value is not expression:
                call = opened[-1].value
                named = dotted(module, call.func, opened[-1].scope) in {"builtins.open", "io.open"}
                return named and bool(call.args) and is_constant(module, call.args[0], opened[-1].scope)
    return is_constant(module, expression, scope)
