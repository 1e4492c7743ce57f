"""Goes through all files that may hold graphs, and gathers the graphs that they build; pure.

First what modules do when they are imported (or run), then what nobody was seen to call (``roots``), then where
conditional edges and commands lead. The steps of all of it are bounded in proportion to the lines that are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from pmagent.actors.audit.graphs.program import Program
from pmagent.actors.audit.graphs.roots import LINE_STEPS, follow_uncalled, told_when_cut
from pmagent.actors.audit.graphs.routes import settle
from pmagent.actors.audit.graphs.run import Run
from pmagent.actors.audit.graphs.shape import shape
from pmagent.actors.audit.graphs.values import Builder
from pmagent.contracts.audit_facts import CodeGraph, GraphEdge, GraphNode

MODULE_STEPS: Final = 60_000
"""Steps for a module, and more for its lines."""
PURSE_STEPS: Final = 500_000
PURSE_LINE_STEPS: Final = 20
"""Steps for all of it, and so many more for each line of the files that are followed."""
SITE_MAX: Final = 8
"""So many graphs are kept of one place that makes several."""


def follow(program: Program) -> Run:
    """A walk through the whole program; its builders are all that were met."""
    run = Run(program)
    paths = sorted([*program.about_graphs, *program.importers()])
    lines = {path: program.sources[path].text.count("\n") for path in paths}
    run.purse = PURSE_STEPS + PURSE_LINE_STEPS * sum(lines.values())
    for path in paths:
        told_when_cut(run, MODULE_STEPS + LINE_STEPS * lines[path], partial(run.loaded, path))
    follow_uncalled(run, paths)
    settle(run, run.builders)
    return run


def graphs_of(builders: Iterable[Builder]) -> list[tuple[Builder, CodeGraph]]:
    """Their graphs, in the order of path and line: one for each place and each shape; of those made at one
    place, none that is a part of another."""
    sites: dict[tuple[str, int, int], list[Builder]] = defaultdict(list)
    for builder in builders:
        if builder.path:  # a class of builders whose methods are followed is not called at any place
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
        path=builder.path, line=builder.line, name=builder.name or builder.function, builder=builder.kind,
        state=builder.state, nodes=[GraphNode(name=node.name, line=node.line) for node in builder.nodes.values()],
        edges=[
            GraphEdge(source=one.source, target=one.target, line=one.line, kind=one.kind, label=one.label)
            for one in edges
        ],
        parallel_sources=list(seen.sources), fan_in_targets=list(seen.fan_ins), compiled=builder.compiled,
        unresolved=builder.unresolved,
    )
