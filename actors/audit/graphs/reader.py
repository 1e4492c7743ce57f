"""Finds the LangGraph graphs of a repository and reads their nodes and edges, without running any of it; pure.

Found are builders (``StateGraph``, ``MessageGraph``, ``Graph``, classes derived from them) under any name, at any
place, and prebuilt agents. Anything that cannot be read stands in ``CodeGraph.unresolved`` as ``line: what``; nothing
is guessed. Files of tests are counted only; graphs of examples are told where the code has none (docs/design.md §15.4).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.graphs.build import BUILDERS
from pmagent.actors.audit.graphs.faults import counted_loops, graph_faults
from pmagent.actors.audit.graphs.findings import graph_findings, running
from pmagent.actors.audit.graphs.program import Program, mentions_graphs
from pmagent.actors.audit.graphs.run import Run
from pmagent.actors.audit.graphs.search import follow, graphs_of
from pmagent.actors.audit.graphs.shape import reached
from pmagent.actors.audit.graphs.values import START, Builder, Func, alternatives
from pmagent.contracts.audit_facts import CodeGraph, Finding, GraphFault

Place = tuple[str, ...]


class GraphReader:
    """Is given every Python file, then says which graphs they build."""

    def __init__(self) -> None:
        self._program = Program()
        self._roles: dict[str, str] = {}
        self._tests = 0
        self._run: Run | None = None
        self._found: list[tuple[Builder, CodeGraph]] = []

    def take(self, source: Source) -> None:
        """Remember a file; it is read when all are there, for graphs are built over several."""
        self._roles[source.path] = source.role
        if source.role != "test":
            self._program.add(source)
        elif source.tree is not None and mentions_graphs(source.text):
            self._tests += 1

    def graphs(self) -> list[CodeGraph]:
        """The graphs of the code, or else those of examples, in the order of path and line."""
        return [graph for _, graph in self._read()]

    def findings(self) -> Iterator[Finding]:
        """The findings in the graphs, goal by goal."""
        return graph_findings(self._read(), 1.0 if self._of_code() else 0.6)

    def faults(self) -> list[GraphFault]:
        """The faults of the graphs, in the order of path and line."""
        builders = [builder for builder, _ in self._read()]
        return graph_faults(self._run, builders) if self._run is not None else []

    def counted(self) -> Iterator[Finding]:
        """Loops that end after so many rounds by a count of their own."""
        for builder, line, key in counted_loops(self._run, [one for one, _ in self._read()]) if self._run else ():
            text = f"a loop of the graph ends by {key}, which it counts up"
            yield Finding(goal="agent.limits", path=builder.path, line=line, text=text, confidence=0.5)

    def unasked(self, sending: Container[Place], asking: Container[Place]) -> Iterator[tuple[CodeGraph, str, bool]]:
        """The nodes that send something and to which a way leads from START past all that ask; and whether any of the
        graph asks. Functions are given as they are told apart: by path, line and name."""
        for builder, graph in self._read():
            named = {
                name: {(one.scope.path, str(one.node.lineno), one.name) for one in alternatives(node.action)
                       if isinstance(one, Func)}
                for name, node in builder.nodes.items()
            }  # fmt: skip
            asks = {name for name, functions in named.items() if any(one in asking for one in functions)}
            onward: dict[str, list[str]] = {}
            for edge in running(builder):
                if edge.source not in asks:
                    onward.setdefault(edge.source, []).append(edge.target)
            past = reached(START, onward) - asks
            for name in [name for name in named if name in past and any(one in sending for one in named[name])]:
                yield graph, name, bool(asks)

    def dead_places(self) -> list[tuple[str, int, int]]:
        """Functions (path, first and last line) that are nodes, but only such to which no path leads from START."""
        alive: set[tuple[str, int, int]] = set()
        dead: dict[tuple[str, int, int], None] = {}
        for builder, _graph in self._read():
            names = {edge.target for edge in running(builder)}
            for name, node in builder.nodes.items():
                for one in alternatives(node.action):
                    if isinstance(one, Func):
                        place = (one.scope.path, one.node.lineno, one.node.end_lineno or one.node.lineno)
                        if name in names or builder.unresolved or builder.kind not in BUILDERS:
                            alive.add(place)
                        else:
                            dead[place] = None
        return [place for place in dead if place not in alive]

    @property
    def examined(self) -> Mapping[str, int]:
        """Files that can hold graphs, and what was found in them."""
        graphs = self.graphs()
        return {
            "graph_files": len(self._program.about_graphs),
            "graph_test_files": self._tests,
            "graphs": len(graphs),
            "own_graphs": sum(graph.builder in BUILDERS for graph in graphs),
            "parallel_graphs": sum(bool(graph.parallel_sources) for graph in graphs),
            "loops": sum(map(_may_loop, graphs)),
            "graph_nodes": sum(len(graph.nodes) for graph in graphs),
            "graph_edges": sum(len(graph.edges) for graph in graphs),
        }

    def _of_code(self) -> bool:
        return any(self._roles[graph.path] == "code" for _, graph in self._read())

    def _read(self) -> list[tuple[Builder, CodeGraph]]:
        if self._run is None:
            self._run = follow(self._program)
            found = graphs_of(self._run.builders)
            of_code = [pair for pair in found if self._roles[pair[1].path] == "code"]
            self._found = of_code or found
        return self._found


def _may_loop(graph: CodeGraph) -> bool:
    """Whether nothing but a limit may end it: an agent, a graph with a cycle, or one that cannot be read whole."""
    if graph.unresolved or graph.builder not in BUILDERS:
        return True
    behind: dict[str, set[str]] = {}
    for edge in graph.edges:
        behind.setdefault(edge.source, set()).add(edge.target)
    try:
        TopologicalSorter(behind).prepare()
    except CycleError:
        return True
    return False
