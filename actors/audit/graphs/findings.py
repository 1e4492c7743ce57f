"""The findings that the graphs of a repository give; pure.

- ``graph.fan_out``: a parallel source (see ``shape``). One conditional edge is none.
- ``graph.fan_in``: a node at which branches of one parallel source meet again; what merely has two predecessors, one of
  them a retry, is none.
- ``graph.conditional``: conditional edges, also those of which it cannot be read where they lead; and nodes that go on
  by ``Command``.
- ``graph.error_route``: of these, one whose label, target or choosing function is named for failure (error, fail,
  missing, retry, abort, fallback …), or whose function decides by something so named, or by whether there is evidence.
  That an edge leads to END is not enough, for every agent's loop has such an edge; a choice of which one way ends the
  run and another goes on for good is.
- ``graph.linear``: a graph of three or more nodes that has been read completely and is one chain, where no graph of the
  repository has a branch of any kind; a chain beside a graph that branches is a helper of it.

Graphs of prebuilt agents show that there is a graph, and no more: their edges are their library's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pmagent.actors.audit.graphs.build import BUILDERS
from pmagent.actors.audit.graphs.failure import speaks_of_failure
from pmagent.actors.audit.graphs.shape import Shape, linear, live, reached, shape
from pmagent.actors.audit.graphs.values import END, START, Builder, EdgeSeen
from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, CodeGraph, Finding

_CONDITIONAL_UNREAD: Final = re.compile(r"(\d+): .*\bconditional edge\b.*")
"""The note of ``build.note`` on a conditional edge that was not read whole."""


def graph_findings(graphs: Sequence[tuple[Builder, CodeGraph]], confidence: float) -> Iterator[Finding]:
    """The findings of all graphs, in the order of path and line for each goal."""
    own = [(builder, graph, shape(running(builder))) for builder, graph in graphs if builder.kind in BUILDERS]
    found = [_finding("graph.builder", graph, graph.line, _summary(graph)) for _, graph in graphs]
    for builder, graph, seen in own:
        found.extend(_parallel(builder, graph, seen))
        found.extend(_conditional(builder, graph))
    if not any(seen.sources or any(edge.kind != "plain" for edge in graph.edges) for _, graph, seen in own):
        for builder, graph, _ in own:
            if not graph.unresolved and linear(builder.nodes, builder.edges):
                found.append(_finding("graph.linear", graph, graph.line, _chain(graph)))
    goals = dict.fromkeys(one.goal for one in found)
    for goal in goals:
        of_goal = sorted((one for one in found if one.goal == goal), key=lambda one: (one.path, one.line))
        for one in of_goal:
            yield Finding(goal=goal, path=one.path, line=one.line, text=one.text, confidence=confidence)


def running(builder: Builder) -> list[EdgeSeen]:
    """The edges that can be taken; all of a graph that could not be read whole."""
    known = {START, END, *builder.nodes}
    whole = all(edge.source in known and edge.target in known for edge in builder.edges)
    return live(builder.edges) if whole and not builder.unresolved else builder.edges


def _leaves_early(builder: Builder, source: str, edges: Sequence[EdgeSeen]) -> bool:
    """Whether one way of a choice ends the run, while another goes on and does not come back: what a loop does when it
    is done is no such exit."""
    leaving: dict[str, list[str]] = {}
    for edge in builder.edges:
        leaving.setdefault(edge.source, []).append(edge.target)
    short = {edge.target for edge in edges if edge.target == END or set(leaving.get(edge.target, [END])) == {END}}
    far = {edge.target for edge in edges} - short - {source}
    return bool(short) and bool(far) and not any(source in reached(one, leaving) for one in far)


def _finding(goal: str, graph: CodeGraph, line: int, text: str) -> Finding:
    named = f"{graph.name}: {text}" if graph.name else text
    short = named if len(named) <= CONTENT_CHARS_MAX else named[: CONTENT_CHARS_MAX - 1] + "…"
    return Finding(goal=goal, path=graph.path, line=line, text=short)


def _summary(graph: CodeGraph) -> str:
    state = f"({graph.state})" if graph.state else ""
    names = ", ".join(node.name for node in graph.nodes)
    unread = f"; {len(graph.unresolved)} not read" if graph.unresolved else ""
    return f"{graph.builder}{state} with {len(graph.nodes)} nodes and {len(graph.edges)} edges{unread}: {names}"


def _chain(graph: CodeGraph) -> str:
    return "one chain: " + ", ".join(f"{edge.source} -> {edge.target}" for edge in graph.edges)


def _parallel(builder: Builder, graph: CodeGraph, seen: Shape) -> Iterator[Finding]:
    for source in seen.sources:
        leaving = [
            edge
            for edge in builder.edges
            if edge.source == source and edge.target != END and (edge.kind in ("plain", "send") or edge.many)
        ]
        targets = ", ".join(
            dict.fromkeys(f"{edge.target} (mapped)" if edge.kind == "send" else edge.target for edge in leaving)
        )
        yield _finding("graph.fan_out", graph, leaving[0].line, f"{source} -> {targets}")
    for source, node in seen.joins:
        entering = [edge for edge in builder.edges if edge.target == node]
        before = ", ".join(dict.fromkeys(edge.source for edge in entering))
        yield _finding("graph.fan_in", graph, entering[-1].line, f"{before} -> {node}, branches of {source}")
    if seen.stages:
        (one, first), (other, last) = seen.stages
        text = f"{one} fans out and {first} joins, then {other} fans out and {last} joins"
        yield _finding("graph.two_stages", graph, graph.line, text)


def _conditional(builder: Builder, graph: CodeGraph) -> Iterator[Finding]:
    groups: dict[tuple[int, str, str], list[EdgeSeen]] = {}
    for edge in running(builder):
        if edge.kind != "plain":
            groups.setdefault((edge.line, edge.source, edge.path), []).append(edge)
    for (line, source, path), edges in groups.items():
        by = f" by {path}" if path else " by Command" if edges[0].kind == "goto" else ""
        ways = ", ".join(
            dict.fromkeys(f"{edge.label} = {edge.target}" if edge.label else edge.target for edge in edges)
        )
        yield _finding("graph.conditional", graph, line, f"{source}{by} -> {ways}")
        reasons = [
            edge for edge in edges if edge.alarm or speaks_of_failure(edge.label) or speaks_of_failure(edge.target)
        ]
        if reasons or speaks_of_failure(path) or _leaves_early(builder, source, edges):
            yield _finding("graph.error_route", graph, line, f"{source}{by} -> {ways}")
    read = {line for line, _, _ in groups}
    notes = [match for one in graph.unresolved if (match := _CONDITIONAL_UNREAD.fullmatch(one)) is not None]
    for line in dict.fromkeys(int(match[1]) for match in notes):
        if line not in read:
            text = "a conditional edge; where it leads cannot be read without running it"
            yield _finding("graph.conditional", graph, line, text)
