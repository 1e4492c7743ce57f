"""How well graphs are read from source, against what LangGraph says of them when they run.

Usage: benchmarks/graph_accuracy.py [PROGRAM]...

Each program of ``graph_programs`` has a compiled ``graph``. Its nodes and edges, and whether an edge is conditional, as
``graph.get_graph()`` draws them, are held against what ``GraphReader`` reads from the program's text. The two do
not speak of the same thing everywhere, so both are brought to one form first:

- ``get_graph()`` is a drawing. It shows an unconditional edge to END only for a node that nothing else leaves, also
  where the program has none; edges of nodes that are not reached from START it leaves out. ``as_drawn`` does the same
  to what was read.
- Of several edges between the same nodes it shows one, conditional or not. Both sides count it as conditional then.
- START and END are no nodes of the program: they are left out of the nodes, not out of the edges.
- Where no edge leads to END, it invents a conditional one, which is taken away.
- It draws nothing of a conditional edge without map and annotation, and of a Command without either. Such programs have
  ``RUNS``: inputs with which the graph is run, and each step that follows a step of one node only counts as an edge.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.contracts.audit_facts import CodeGraph

PROGRAMS = Path(__file__).with_name("graph_programs")
START, END = "__start__", "__end__"

Edge = tuple[str, str, bool]
"""Source, target, and whether it is conditional."""


class Drawn(NamedTuple):
    """A graph in the form in which both sides are compared."""

    nodes: frozenset[str]
    edges: frozenset[Edge]


class Hits(NamedTuple):
    """Counts: the things read, the things that there are, and those that are the same."""

    read: int
    true: int
    same: int

    @property
    def precision(self) -> float:
        """The share of what was read that is true."""
        return self.same / self.read if self.read else 1.0

    @property
    def recall(self) -> float:
        """The share of what is true that was read."""
        return self.same / self.true if self.true else 1.0


class Accuracy(NamedTuple):
    """Of one program, or of all; ``wrong`` and ``missed`` in words."""

    nodes: Hits
    edges: Hits
    wrong: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


def programs() -> list[str]:
    """The names of all programs."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def measure(name: str) -> Accuracy:
    """Read a program, import it, and compare."""
    read, true = read_graph(name), drawn_graph(name)
    wrong = [*(f"node {one}" for one in read.nodes - true.nodes), *map(_shown, read.edges - true.edges)]
    missed = [*(f"node {one}" for one in true.nodes - read.nodes), *map(_shown, true.edges - read.edges)]
    return Accuracy(
        Hits(len(read.nodes), len(true.nodes), len(read.nodes & true.nodes)),
        Hits(len(read.edges), len(true.edges), len(read.edges & true.edges)),
        tuple(sorted(wrong)),
        tuple(sorted(missed)),
    )


def total(results: Iterable[Accuracy]) -> Accuracy:
    """All results in one."""
    found = list(results)
    nodes = Hits(*(sum(column) for column in zip(*(one.nodes for one in found), strict=True)))
    edges = Hits(*(sum(column) for column in zip(*(one.edges for one in found), strict=True)))
    return Accuracy(nodes, edges)


def read_graph(name: str) -> Drawn:
    """The graph that is read from the text of a program and of its imports: the one named ``graph``, else the last."""
    graphs = read_graphs(name)
    if not graphs:
        return Drawn(frozenset(), frozenset())
    return as_drawn(next((graph for graph in graphs if graph.name == "graph"), graphs[-1]))


def read_graphs(name: str) -> list[CodeGraph]:
    """The graphs of a program."""
    reader = GraphReader()
    for path in (PROGRAMS / f"{name}.py", *sorted(PROGRAMS.glob("parts/*.py"))):
        text = path.read_text()
        reader.take(Source(str(path.relative_to(PROGRAMS.parents[1])), text, ast.parse(text), "code"))
    return [graph for graph in reader.graphs() if name == "template_method" or "/parts/" not in graph.path]


def as_drawn(graph: CodeGraph) -> Drawn:
    """A graph that was read, drawn as ``get_graph()`` draws."""
    choices: dict[tuple[str, str], bool] = {}
    for edge in graph.edges:
        pair = (edge.source, edge.target)
        choices[pair] = choices.get(pair, False) or edge.kind != "plain"
    leaving: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for (source, target), conditional in choices.items():
        if target != END or conditional:
            leaving[source].append((target, conditional))
    edges: set[Edge] = set()
    reached, waiting = {START}, [START]
    while waiting:
        source = waiting.pop()
        for target, conditional in leaving[source] or ([(END, False)] if source != START else []):
            edges.add((source, target, conditional))
            if target not in reached and target != END:
                reached.add(target)
                waiting.append(target)
    return Drawn(frozenset(node.name for node in graph.nodes), _settled(edges))


def _settled(edges: set[Edge]) -> frozenset[Edge]:
    """The only edge of a node, when it leads to END, counts as unconditional: drawings are not of one mind there."""
    alone = {edge for edge in edges if edge[1] == END and sum(one[0] == edge[0] for one in edges) == 1}
    return frozenset((edges - alone) | {(source, target, False) for source, target, _ in alone})


def drawn_graph(name: str) -> Drawn:
    """The graph of a program by ``get_graph()``, and the edges that its runs show besides."""
    module = importlib.import_module(f"benchmarks.graph_programs.{name}")
    return drawn(module.graph, getattr(module, "RUNS", ()))


def drawn(graph: Any, runs: Sequence[dict[str, Any]] = ()) -> Drawn:
    """A compiled graph by ``get_graph()``, and the edges that running it shows besides."""
    drawing = graph.get_graph()
    edges: set[Edge] = set()
    for edge in drawing.edges:
        chosen = edge.target in _chosen(graph, edge.source)
        if chosen or not (edge.conditional and edge.target == END and hasattr(graph, "builder")):
            edges.add((edge.source, edge.target, chosen or edge.conditional))
    if runs:
        edges = _with_runs(graph, edges, runs)
    return Drawn(frozenset(drawing.nodes) - {START, END}, _settled(edges))


def _chosen(graph: Any, source: str) -> set[str]:
    """Where the conditional edges and commands of a node lead, as declared."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return set()
    declared = {*(builder.nodes[source].ends or ())} if source in builder.nodes else set()
    for branch in builder.branches[source].values():
        declared.update((branch.ends or {}).values())
    return declared


def _with_runs(graph: Any, found: set[Edge], runs: Sequence[dict[str, Any]]) -> set[Edge]:
    """Add what happens after a step of one node. A node that is seen to go on has no end drawn for want of an edge."""
    steps = {(source, target) for values in runs for source, target in _steps(graph, values)}
    plain = {(source, target) for source, target, conditional in found if not conditional and target != END}
    declared = plain | set(graph.builder.edges)
    hidden = {(source, target, True) for source, target in steps if (source, target) not in declared}
    going_on = {source for source, _, _ in hidden}
    kept = {edge for edge in found if edge[1] != END or edge[0] not in going_on}
    reached = {target for _, target, _ in hidden}
    behind = {(source, target, False) for source, target in declared if source in reached and target in graph.nodes}
    ends = {target for _, target, _ in hidden | behind if target != END}
    edges = kept | hidden | behind
    return edges | {(end, END, False) for end in ends if not any(source == end for source, _, _ in edges)}


def _steps(graph: Any, values: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Which node follows which, for steps of one node."""
    steps: dict[int, set[str]] = {0: {START}}
    for event in graph.stream(values, stream_mode="debug"):
        if event["type"] == "task":
            steps.setdefault(event["step"], set()).add(event["payload"]["name"])
    steps[len(steps)] = {END}
    for number in range(1, len(steps)):
        if len(steps[number - 1]) == 1:
            yield from ((next(iter(steps[number - 1])), name) for name in sorted(steps[number]))


def _shown(edge: Edge) -> str:
    return f"{edge[0]} {'-?>' if edge[2] else '->'} {edge[1]}"


def _row(name: str, one: Accuracy) -> str:
    figures = (one.nodes.precision, one.nodes.recall, one.edges.precision, one.edges.recall)
    return f"{name:<22}" + "".join(f"{figure:>9.3f}" for figure in figures) + f"{one.nodes.true:>7}{one.edges.true:>7}"


def main(names: Sequence[str]) -> int:
    """Print precision and recall of each program, and of all."""
    print(f"{'program':<22}{'node P':>9}{'node R':>9}{'edge P':>9}{'edge R':>9}{'nodes':>7}{'edges':>7}")
    results = {name: measure(name) for name in names or programs()}
    for name, one in results.items():
        print(_row(name, one))
        for what, said in (("wrong", one.wrong), ("missed", one.missed)):
            for line in said:
                print(f"    {what}: {line}")
    print(_row(f"all {len(results)}", total(results.values())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
