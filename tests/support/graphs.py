"""Programs that build graphs, read from their text."""

from __future__ import annotations

import ast
from textwrap import dedent

from pmagent.actors.audit.detectors.code.source import Role, Source
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.contracts.audit_facts import CodeGraph, Finding

HEAD = """\
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send
def f(state): return state
b = StateGraph(dict)
"""
"""The lines with which most programs begin; their own begin behind them."""


def source(path: str, text: str, role: Role = "code") -> Source:
    """A file that parses."""
    return Source(path, text, ast.parse(text), role)


def reader_of(files: dict[str, str], roles: dict[str, Role] | None = None) -> GraphReader:
    """A reader that was given these files, dedented."""
    reader = GraphReader()
    for path in sorted(files):
        reader.take(source(path, dedent(files[path]), (roles or {}).get(path, "code")))
    return reader


def graphs_of(**modules: str) -> list[CodeGraph]:
    """The graphs of some modules by their names (__ stands for a folder's /)."""
    return reader_of({f"{name.replace('__', '/')}.py": text for name, text in modules.items()}).graphs()


def graph_of(body: str) -> CodeGraph:
    """The only graph of a program, of which the head is given."""
    graphs = graphs_of(program=HEAD + dedent(body))
    assert len(graphs) == 1, graphs
    return graphs[0]


def findings_of(body: str) -> list[Finding]:
    """The findings in the graphs of a program, of which the head is given."""
    return list(reader_of({"program.py": HEAD + dedent(body)}).findings())


def goals_of(body: str) -> set[str]:
    """The goals of these findings."""
    return {finding.goal for finding in findings_of(body)}


def nodes(graph: CodeGraph) -> list[str]:
    """The names of a graph's nodes, in order."""
    return [node.name for node in graph.nodes]


def edges(graph: CodeGraph, kind: str | None = None) -> set[tuple[str, str]]:
    """The edges of a graph, of one kind or of all."""
    return {(edge.source, edge.target) for edge in graph.edges if kind is None or edge.kind == kind}
