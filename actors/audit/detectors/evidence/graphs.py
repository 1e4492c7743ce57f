"""Graphs found in the audited code as content of evidence; pure."""

from __future__ import annotations

from pmagent.actors.audit.detectors.evidence.text import one_line
from pmagent.contracts.audit_facts import CodeGraph, GraphEdge

_NODES = 40
_EDGES = 60
_ARROWS = {"plain": "→", "conditional": "?→", "goto": "goto→", "send": "send→"}


def graph_content(graph: CodeGraph) -> str:
    """A graph on a few lines: where it is built, its nodes, edges, fan-outs and fan-ins, and what could not be read."""
    built = "compiled" if graph.compiled else "not compiled"
    named = graph.name or "(unnamed)"
    lines = [
        f"{graph.path}:{graph.line}: {graph.builder} {named}, state {graph.state or 'untyped'}, {built}",
        f"nodes: {_listed([node.name for node in graph.nodes], _NODES)}",
        f"edges: {_listed([_edge(edge) for edge in graph.edges], _EDGES)}",
    ]
    if graph.parallel_sources:
        lines.append(f"fan-out from: {_listed(graph.parallel_sources, _NODES)}")
    if graph.fan_in_targets:
        lines.append(f"fan-in at: {_listed(graph.fan_in_targets, _NODES)}")
    if graph.unresolved:
        lines.append(f"not readable without running it: {_listed(graph.unresolved, _NODES)}")
    return "\n".join(one_line(line, 1_500) for line in lines)


def graph_line(graph: CodeGraph) -> str:
    """A graph in a line, where what was looked for is not in it."""
    return (
        f"{graph.path}:{graph.line}: {len(graph.nodes)} nodes, {len(graph.edges)} edges: "
        f"{_listed([_edge(edge) for edge in graph.edges], 12)}"
    )


def _edge(edge: GraphEdge) -> str:
    label = f" ({edge.label})" if edge.label else ""
    return f"{edge.source} {_ARROWS[edge.kind]} {edge.target}{label}"


def _listed(texts: list[str], most: int) -> str:
    told = ", ".join(texts[:most]) or "none"
    return told if len(texts) <= most else f"{told}, and {len(texts) - most} more"
