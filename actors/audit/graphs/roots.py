"""Follows the functions and classes that build graphs and that nobody was seen to call; pure.

Their parameters are unknown, but for defaults that are no switches. Callers come before those they call, derived
classes before those that they inherit from: what a builder is given by a caller that is seen counts more than what it
would do on its own.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.build import note
from pmagent.actors.audit.graphs.calls import call
from pmagent.actors.audit.graphs.members import ancestry, class_attribute
from pmagent.actors.audit.graphs.program import Mentions
from pmagent.actors.audit.graphs.run import Run
from pmagent.actors.audit.graphs.values import Class, Func, Value, alternatives

_T = TypeVar("_T", Func, Class)

LINE_STEPS: Final = 12
"""Steps for each line of what is followed."""
ROOT_STEPS: Final = 20_000
"""Steps for a function or a class, besides those for its lines."""
_SPREAD_ROUNDS: Final = 3


def told_when_cut(run: Run, steps: int, work: Callable[[], Value]) -> None:
    """Follow something, and tell each graph that it made when the steps did not suffice."""
    before = len(run.builders)
    _, cut = run.within(steps, work)
    for builder in run.builders[before:] if cut else ():
        note(builder, builder.line, "the program is too large to be followed to its end")


def follow_uncalled(run: Run, paths: Sequence[str]) -> None:
    """Follow what builds graphs in these modules and has not been followed yet."""
    functions = {path: _own(run, path, Func) for path in paths}
    classes = [owner for path in paths for owner in _own(run, path, Class)]
    mentions = {path: Mentions(run.program.sources[path].text) for path in paths}
    about = _about(functions, classes, mentions)
    for path in paths:
        for function in _callers_first([one for one in functions[path] if one.node in about]):
            _follow(run, function)
    inherited = {
        one.node for owner in classes for one in ancestry(owner) if isinstance(one, Class) and one is not owner
    }
    for owner in [one for wanted in (False, True) for one in classes if (one.node in inherited) is wanted]:
        methods = [one for one in _methods(owner) if one.node in about]
        if owner.node in inherited:
            methods = [one for one in methods if one.node not in run.entered]
        if methods:
            _follow_class(run, owner, _callers_first(methods))
    for function in [one for one in run.defined if one.scope.path in mentions]:
        if mentions[function.scope.path].within(_definition(function)):
            _follow(run, function)


def _own(run: Run, path: str, kind: type[_T]) -> list[_T]:
    """The functions or the classes of a module, in the order of lines."""
    scope = run.module(path)
    named = [one for value in list(scope.names.values()) for one in alternatives(value) if isinstance(one, kind)]
    found = {id(one): one for one in named if one.scope is scope}
    return sorted(found.values(), key=lambda one: one.node.lineno)


def _about(
    functions: dict[str, list[Func]], classes: Sequence[Class], mentions: dict[str, Mentions]
) -> AbstractSet[ast.AST]:
    """The functions and methods that speak of graphs, or of functions and classes that do, also of another module."""
    everything = dict(functions)
    for owner in classes:
        own = [value for value in owner.members.values() if isinstance(value, Func)]
        everything[owner.scope.path] = [*everything[owner.scope.path], *own]
    found = {one for path, several in everything.items() for one in _spread(mentions[path], several)}
    nodes = {one.node for one in found}
    names = {one.name for one in found if not one.name.startswith("__")}
    names.update(owner.name for owner in classes if any(one.node in nodes for one in _methods(owner)))
    for path, several in everything.items():
        mentions[path].also(names)
        nodes.update(one.node for one in _spread(mentions[path], several))
    return nodes


def _methods(owner: Class) -> list[Func]:
    """The methods of a class, with those that it inherits."""
    found: dict[str, Func] = {}
    for one in ancestry(owner):
        if isinstance(one, Class):
            for name, value in one.members.items():
                if isinstance(value, Func):
                    found.setdefault(name, value)
    return list(found.values())


def _definition(function: Func) -> ast.stmt:
    assert isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
    return function.node


def _spread(mentions: Mentions, functions: Sequence[Func]) -> list[Func]:
    """The functions that speak of graphs, or of functions that do."""
    named = [one for one in functions if not isinstance(one.node, ast.Lambda)]
    about: list[Func] = []
    for _ in range(_SPREAD_ROUNDS):
        found = [one for one in named if mentions.within(_definition(one))]
        if len(found) == len(about):
            break
        mentions.also({one.name for one in found} - {"__init__", "__call__"} or {"StateGraph"})
        about = found
    return about


def _callers_first(functions: Sequence[Func]) -> list[Func]:
    """Those that none of the others names, then the rest, each in the order of lines."""
    ordered = sorted(functions, key=lambda one: one.node.lineno)
    named: dict[str, set[int]] = defaultdict(set)
    for number, function in enumerate(ordered):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Name):
                named[node.id].add(number)
            elif isinstance(node, ast.Attribute):
                named[node.attr].add(number)
    by_others = [bool(named[one.name] - {number}) for number, one in enumerate(ordered)]
    return [
        one for wanted in (False, True) for one, named_by in zip(ordered, by_others, strict=True) if named_by is wanted
    ]


def _follow(run: Run, function: Func) -> None:
    if function.node not in run.entered:
        told_when_cut(run, _steps(_definition(function)), lambda: call(run, function, Arguments(unknown=True)))


def _steps(definition: ast.stmt) -> int:
    return ROOT_STEPS + LINE_STEPS * ((definition.end_lineno or definition.lineno) - definition.lineno)


def _follow_class(run: Run, owner: Class, methods: Sequence[Func]) -> None:
    """Follow the methods that have not been followed on an instance of this class."""
    if all((method.node, owner.node) in run.entered_on for method in methods):
        return

    def work() -> Value:
        instance = run.instances.get(owner.node) or call(run, owner, Arguments(unknown=True))
        for method in methods:
            bound = class_attribute(owner, method.name, instance)
            if isinstance(bound, Func) and (method.node, owner.node) not in run.entered_on:
                call(run, bound, Arguments(unknown=True))
        return instance

    told_when_cut(run, _steps(owner.node), work)
