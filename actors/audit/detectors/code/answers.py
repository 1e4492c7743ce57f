"""The path of a model's answer: which names hold it, which functions hand it on, which read a text; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from pmagent.actors.audit.detectors.code.model_calls import ModelCall, model_calls
from pmagent.actors.audit.detectors.code.names import (
    called,
    calls_of,
    dotted,
    inside,
    last_name,
    own_function,
    parameters,
    walk,
)
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope, once
from pmagent.actors.audit.detectors.code.tree import children
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "answers")

T = TypeVar("T")

_STEPS_MAX: Final = 400
_LOADING: Final = _LISTS.words("loading")
_READING: Final = frozenset(f"re.{name}" for name in ("search", "match", "fullmatch", "findall", "finditer", "split"))
_TAKING: Final = frozenset(name.rpartition(".")[2] for name in _LOADING | _READING)
_STRUCTURED: Final = frozenset({"tool_calls", "function_call", "arguments", "parsed", "structured_response", "args"})
_NUMBERS: Final = frozenset({"builtins.int", "builtins.float"})


_GIVING: Final = frozenset((ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For))
"""Kinds of nodes that give names a value."""


class Flow(Generic[T]):
    """In one function: which names hold something that came from one of ``sources`` (calls by their id) or stood in
    one of the names of ``start``. Follows assignments in the order in which they stand. ``text``: what a model calls a
    tool with, or what was parsed for the program, is not followed: it is no free text. ``ever``: a name that has held
    it once counts wherever it stands."""

    def __init__(
        self, body: ast.AST, sources: Mapping[int, T], start: Mapping[str, T] | None = None, *, text: bool = False,
        ever: bool = False,
    ) -> None:  # fmt: skip
        self._ever = ever
        self._sources = sources
        self._text = text
        self.names: dict[str, T] = dict(start or {})
        for node in sorted(
            (node for node in inside(body) if type(node) in _GIVING),
            key=attrgetter("lineno", "col_offset"),
        ) if sources or start else ():  # fmt: skip
            self._assign(node)

    def source(self, expression: ast.AST | None) -> T | None:
        """The source found in ``expression``, or in what a call there is given; None: there is none."""
        todo: list[ast.AST] = [] if expression is None or not (self._sources or self.names) else [expression]
        for _ in range(_STEPS_MAX):
            if not todo:
                break
            node = todo.pop()
            if id(node) in self._sources:
                return self._sources[id(node)]
            if isinstance(node, ast.Name) and node.id in self.names:
                return self.names[node.id]
            if self._text and is_structured(node):
                return None
            todo += children(node)
        return None

    def _assign(self, node: Any) -> None:
        found = self.source(node.iter if isinstance(node, ast.For) else node.value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for name in [one.id for one in walk(target) if isinstance(one, ast.Name)]:
                if found is not None:
                    self.names[name] = found
                elif not self._ever:
                    self.names.pop(name, None)


def is_structured(node: ast.AST) -> bool:
    """Whether a node names the part of an answer that is structured: arguments of a tool, what was parsed."""
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in _STRUCTURED
    return False


def answers(body: ast.AST, asked: list[ModelCall], *, text: bool = False) -> Flow[ModelCall]:
    """Which names of a function hold what a model answered."""
    return Flow(body, {id(one.call): one for one in asked}, text=text)


@once
def questions(module: Module) -> dict[Function | None, list[ModelCall]]:
    """The questions to models of a file, by the function in which they stand: calls of the file's own functions that
    hand an answer on are among them."""
    found: dict[Function | None, list[ModelCall]] = {}
    for one in model_calls(module):
        found.setdefault(one.site.scope.function, []).append(one)
    for _ in range(2):  # a function that hands on what a function hands on
        handing: dict[Function, ModelCall] = {}
        for function, asked in found.items():
            scope = None if function is None else module.scopes.get(function)
            if function is not None and scope is not None:
                flow = answers(function, asked)
                told = next((one for one in map(flow.source, scope.returned) if one is not None), None)
                if told is not None:
                    parts = any(is_structured(node) for value in scope.returned[:8] for node in ast.walk(value))
                    handing[function] = told._replace(bound=told.bound or "tool call") if parts else told
        if not handing or not _add_calls(module, handing, found):
            break
    return found


def _add_calls(
    module: Module, handing: Mapping[Function, ModelCall], found: dict[Function | None, list[ModelCall]]
) -> bool:
    """Add the calls of functions that hand an answer on; whether there were any that were not known."""
    known = {id(one.call) for asked in found.values() for one in asked}
    names = {function.name for function in handing}
    added = False
    for call, site in list(calls_of(module, names)):
        if last_name(call.func) not in names or id(call) in known:
            continue
        function = own_function(module, call.func, site.scope)
        if function is not None and function in handing and site.scope.function is not function:
            told = handing[function]
            asked = ModelCall(call, site, round(0.95 * told.sure, 2), told.bound)
            found.setdefault(site.scope.function, []).append(asked)
            added = True
    return added


# --- texts that are read ------------------------------------------------------------------------------------------


def reading(module: Module, call: ast.Call, scope: Scope) -> tuple[ast.expr | None, str]:
    """The text that a call takes apart (JSON, a regular expression, split, a number), and how."""
    name = dotted(module, call.func, scope)
    if name in _LOADING and call.args:
        return call.args[0], name
    if name in _READING and len(call.args) > 1:
        return call.args[1], name
    if name in _NUMBERS and call.args:
        counted = isinstance(call.args[0], ast.Call) and last_name(call.args[0].func) == "len"
        return (None, "") if counted else (call.args[0], name)
    match call.func:
        case ast.Attribute(value=owner, attr="split" | "splitlines" | "partition" | "rpartition" as attr):
            return owner, f"{attr}()"
        case ast.Attribute(value=ast.Name() as pattern, attr="search" | "match" | "findall" | "fullmatch" as attr):
            if dotted(module, pattern, scope).startswith("re.compile") and call.args:
                return call.args[0], f"{attr}() of a regular expression"
    return None, ""


def readers(module: Module) -> dict[Function, dict[str, str]]:
    """The functions of a file that read JSON out of a parameter, or search it: the parameter, and how."""
    found: dict[Function, dict[str, str]] = {}
    calling = (site.scope.function for call, site in calls_of(module, _TAKING) if _may_read(called(module, call, site)))
    for function in dict.fromkeys(calling):
        if function is None:
            continue
        names = [one.arg for one in parameters(function)]
        flow = Flow(function, {}, {name: name for name in names}, text=True)
        scope = module.scopes[function]
        for node in inside(function):
            if isinstance(node, ast.Call):
                text, how = reading(module, node, scope)
                name = flow.source(text) if how in _LOADING or how in _READING else None
                if name is not None:
                    found.setdefault(function, {}).setdefault(name, how)
    return found


def _may_read(name: str) -> bool:
    return name in _LOADING or name in _READING


def given(function: Function, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call of ``function``, by the names of its parameters."""
    names = [one.arg for one in parameters(function)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    yield from zip(names, call.args, strict=False)
    yield from ((one.arg, one.value) for one in call.keywords if one.arg)
