"""Goes through all files that may hold graphs, and gathers the graphs that they build; pure.

First what modules do when they are imported (or run), then the functions and classes that build graphs and that nobody
was seen to call, with parameters that are unknown: callers before those they call.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from actors.audit.code.graph_arguments import Arguments
from actors.audit.code.graph_build import note
from actors.audit.code.graph_calls import call
from actors.audit.code.graph_members import class_attribute
from actors.audit.code.graph_program import Mentions, Program
from actors.audit.code.graph_routes import settle
from actors.audit.code.graph_run import Run
from actors.audit.code.graph_shape import shape
from actors.audit.code.graph_values import Builder, Class, Func, alternatives
from contracts.audit_facts import CodeGraph, GraphEdge, GraphNode

MODULE_STEPS: Final = 60_000
LINE_STEPS: Final = 12
"""Steps for a module, and so many more for each of its lines."""
ROOT_STEPS: Final = 20_000
"""Steps for a function that nobody is seen to call."""
SITE_MAX: Final = 8
"""So many graphs are kept of one place that makes several."""
_SPREAD_ROUNDS: Final = 3


def read_graphs(program: Program) -> list[tuple[Builder, CodeGraph]]:
    """All graphs of the program, in the order of path and line."""
    run = Run(program)
    for path in sorted(program.about_graphs):
        run.allow(MODULE_STEPS + LINE_STEPS * program.sources[path].text.count("\n"))
        before = len(run.builders)
        run.module(path)
        _cut(run, before)
    for path in sorted(program.about_graphs):
        _definitions(run, path)
    settle(run, run.builders)
    return _told(run.builders)


def _cut(run: Run, before: int) -> None:
    """Tell each graph that was met since, when the steps did not suffice."""
    if run.exhausted:
        for builder in run.builders[before:]:
            note(builder, builder.line, "the program is too large to be followed to its end")


def _definitions(run: Run, path: str) -> None:
    """Follow the functions and methods that build graphs and have not been followed yet."""
    scope = run.module(path)
    found = [option for value in list(scope.names.values()) for option in alternatives(value)]
    functions = [one for one in found if isinstance(one, Func) and one.scope is scope]
    classes = [one for one in found if isinstance(one, Class) and one.scope is scope]
    methods = {owner.name: _methods(owner) for owner in classes}
    mentions = Mentions(run.program.sources[path].text)
    everything = [*functions, *(one for several in methods.values() for one in several)]
    about = {id(one) for one in _spread(mentions, everything)}
    for function in _callers_first([one for one in functions if id(one) in about]):
        _follow(run, function)
    for owner in sorted(classes, key=lambda one: one.node.lineno):
        _follow_class(run, owner, _callers_first([one for one in methods[owner.name] if id(one) in about]))
    for function in [one for one in run.defined if one.scope.path == path and mentions.within(_definition(one))]:
        _follow(run, function)


def _methods(owner: Class) -> list[Func]:
    return [value for value in owner.members.values() if isinstance(value, Func)]


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
        before = len(run.builders)
        run.allow(ROOT_STEPS + LINE_STEPS * ((_definition(function).end_lineno or 0) - function.node.lineno))
        call(run, function, Arguments(unknown=True))
        _cut(run, before)


def _follow_class(run: Run, owner: Class, methods: Sequence[Func]) -> None:
    if all(method.node in run.entered for method in methods):
        return
    run.allow(ROOT_STEPS + LINE_STEPS * ((owner.node.end_lineno or 0) - owner.node.lineno))
    before = len(run.builders)
    instance = run.instances.get(owner.node) or call(run, owner, Arguments(unknown=True))
    for method in methods:
        bound = class_attribute(owner, method.name, instance)
        if isinstance(bound, Func) and method.node not in run.entered:
            call(run, bound, Arguments(unknown=True))
    _cut(run, before)


def _told(builders: Iterable[Builder]) -> list[tuple[Builder, CodeGraph]]:
    """One graph for each place and each shape: of those made at one place, none that is a part of another."""
    sites: dict[tuple[str, int, int], list[Builder]] = defaultdict(list)
    for builder in builders:
        sites[builder.path, builder.line, builder.column].append(builder)
    kept = [one for site in sorted(sites) for one in _largest(sites[site])[:SITE_MAX]]
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
