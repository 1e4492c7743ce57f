"""Goes through all files that may hold graphs, and gathers the graphs that they build; pure.

First what modules do when they are imported (or run), then the functions and classes that build graphs and that nobody
was seen to call, with parameters that are unknown: callers before those they call.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, TypeVar

from actors.audit.code.graph_arguments import Arguments
from actors.audit.code.graph_build import note
from actors.audit.code.graph_calls import call
from actors.audit.code.graph_members import ancestry, class_attribute
from actors.audit.code.graph_program import Mentions, Program
from actors.audit.code.graph_routes import settle
from actors.audit.code.graph_run import Run
from actors.audit.code.graph_shape import shape
from actors.audit.code.graph_values import Builder, Class, Func, Value, alternatives
from contracts.audit_facts import CodeGraph, GraphEdge, GraphNode

_T = TypeVar("_T", Func, Class)

MODULE_STEPS: Final = 60_000
LINE_STEPS: Final = 12
"""Steps for a module, and so many more for each of its lines."""
ROOT_STEPS: Final = 20_000
"""Steps for a function that nobody is seen to call, and for its lines besides."""
PURSE_STEPS: Final = 500_000
PURSE_LINE_STEPS: Final = 20
"""Steps for all of it, and so many more for each line of the files that speak of graphs."""
SITE_MAX: Final = 8
"""So many graphs are kept of one place that makes several."""
GRAPHS_MAX: Final = 200
"""So many graphs are told of a repository."""
_SPREAD_ROUNDS: Final = 3


def read_graphs(program: Program) -> list[tuple[Builder, CodeGraph]]:
    """All graphs of the program, in the order of path and line."""
    run = Run(program)
    paths = sorted(program.about_graphs)
    lines = {path: program.sources[path].text.count("\n") for path in paths}
    run.purse = PURSE_STEPS + PURSE_LINE_STEPS * sum(lines.values())
    for path in paths:
        _told_when_cut(run, MODULE_STEPS + LINE_STEPS * lines[path], partial(run.loaded, path))
    about = {path: _spread(Mentions(program.sources[path].text), _functions(run, path)) for path in paths}
    everywhere = {one.node for several in about.values() for one in several}
    for path in paths:
        _follow_definitions(run, path, everywhere)
    settle(run, run.builders)
    return _told(run.builders)


def _told_when_cut(run: Run, steps: int, work: Callable[[], Value]) -> None:
    """Follow something, and tell each graph that it made when the steps did not suffice."""
    before = len(run.builders)
    _, cut = run.within(steps, work)
    for builder in run.builders[before:] if cut else ():
        note(builder, builder.line, "the program is too large to be followed to its end")


def _own(run: Run, path: str, kind: type[_T]) -> list[_T]:
    """The functions or the classes of a module, in the order of lines."""
    scope = run.module(path)
    named = [one for value in list(scope.names.values()) for one in alternatives(value) if isinstance(one, kind)]
    found = {id(one): one for one in named if one.scope is scope}
    return sorted(found.values(), key=lambda one: one.node.lineno)


def _functions(run: Run, path: str) -> list[Func]:
    """The functions of a module, and the methods of its classes."""
    methods = [value for owner in _own(run, path, Class) for value in owner.members.values()]
    return [*_own(run, path, Func), *(value for value in methods if isinstance(value, Func))]


def _follow_definitions(run: Run, path: str, about: AbstractSet[ast.AST]) -> None:
    """Follow the functions and methods that build graphs and have not been followed yet."""
    for function in _callers_first([one for one in _own(run, path, Func) if one.node in about]):
        _follow(run, function)
    for owner in _own(run, path, Class):
        methods = [one for one in _methods(owner) if one.node in about]
        if methods:
            _follow_class(run, owner, _callers_first(methods))
    mentions = Mentions(run.program.sources[path].text)
    for function in [one for one in run.defined if one.scope.path == path and mentions.within(_definition(one))]:
        _follow(run, function)


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
        _told_when_cut(run, _steps(_definition(function)), lambda: call(run, function, Arguments(unknown=True)))


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

    _told_when_cut(run, _steps(owner.node), work)


def _told(builders: Iterable[Builder]) -> list[tuple[Builder, CodeGraph]]:
    """One graph for each place and each shape: of those made at one place, none that is a part of another."""
    sites: dict[tuple[str, int, int], list[Builder]] = defaultdict(list)
    for builder in builders:
        if builder.path:  # a class of builders whose methods are followed is not called at any place
            sites[builder.path, builder.line, builder.column].append(builder)
    kept = [one for site in sorted(sites) for one in _largest(sites[site])[:SITE_MAX]][:GRAPHS_MAX]
    return [(builder, _graph(builder)) for builder in kept]


def _largest(builders: Sequence[Builder]) -> list[Builder]:
    parts = [({*one.nodes}, {(edge.source, edge.target, edge.kind) for edge in one.edges}) for one in builders[:64]]
    kept: list[int] = []
    for number, (nodes, edges) in enumerate(parts):
        others = [at for at in range(len(parts)) if at != number and nodes <= parts[at][0] and edges <= parts[at][1]]
        if not any(parts[at] != (nodes, edges) or at < number for at in others):
            kept.append(number)
    return [builders[number] for number in kept]


def _graph(builder: Builder) -> CodeGraph:
    edges = list({(one.source, one.target, one.kind, one.label): one for one in builder.edges}.values())
    seen = shape(edges)
    return CodeGraph(
        path=builder.path,
        line=builder.line,
        name=builder.name or builder.function,
        builder=builder.kind,
        state=builder.state,
        nodes=[GraphNode(name=node.name, line=node.line) for node in builder.nodes.values()],
        edges=[
            GraphEdge(source=one.source, target=one.target, line=one.line, kind=one.kind, label=one.label)
            for one in edges
        ],
        parallel_sources=list(seen.sources),
        fan_in_targets=list(seen.fan_ins),
        compiled=builder.compiled,
        unresolved=builder.unresolved,
    )
