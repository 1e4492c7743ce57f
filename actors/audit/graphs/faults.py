"""The faults of a graph: nodes that cannot run, updates that are lost, routes that lead nowhere; pure.

Each rule holds only where all that it depends on could be read; a graph of which something could not be read is not
accused of what may stand there. The rules follow what LangGraph does (1.0): see ``RULES``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from pmagent.actors.audit.graphs.build import BUILDERS
from pmagent.actors.audit.graphs.channels import channels
from pmagent.actors.audit.graphs.routes import function_of, labels_chosen
from pmagent.actors.audit.graphs.updates import UpdateReader, Updates, counters_of, is_settled
from pmagent.actors.audit.graphs.values import END, START, Builder, EdgeSeen, Func, Value, excluding
from pmagent.contracts.audit_facts import GraphFault, Severity

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run


class Rule(NamedTuple):
    """``title``: what is wrong, in general; ``consequence``: what LangGraph does then; ``fix``: what to change."""

    severity: Severity
    title: str
    consequence: str
    fix: str


RULES: Final[Mapping[str, Rule]] = {
    "no-entry": Rule(
        "error", "The graph has no edge from START", "compile() raises ValueError", "add an edge from START"),
    "unknown-node": Rule(
        "error", "An edge names a node that was never added",
        "compile() raises ValueError, or the route fails when taken", "add the node, or correct the name"),
    "unreachable-node": Rule(
        "error", "No path leads from START to the node", "the node never runs",
        "add an edge to it, or remove the node"),
    "endless-cycle": Rule(
        "error", "No path leads from the node to an end", "the graph runs until GraphRecursionError",
        "add a condition that leads to END"),
    "stuck-choice": Rule(
        "error", "A loop's only way out depends on keys that no node of the loop writes",
        "the choice is the same in each round: the loop ends at once, or runs until GraphRecursionError",
        "let a node of the loop write one of the keys"),
    "unmapped-route": Rule(
        "error", "The function that chooses returns a value that the edge's map does not have",
        "KeyError when that way is chosen", "add the value to the map"),
    "undeclared-read": Rule(
        "error", "The code reads a key that the state does not declare",
        "the key is never set: LangGraph drops what nodes write to it", "declare the key in the state"),
    "undeclared-write": Rule(
        "warning", "A node writes a key that the state does not declare", "LangGraph drops the value without a word",
        "declare the key in the state"),
    "parallel-write": Rule(
        "error", "Nodes that run in one step write the same key, and it has no reducer",
        "InvalidUpdateError when both write", "annotate the key with a reducer, such as operator.add"),
    "empty-node": Rule(
        "note", "The node's function does nothing", "the step changes nothing", "write it, or remove the node"),
    "constant-node": Rule(
        "note", "The node's function returns the same constants whatever the state is",
        "its result carries no information", "compute the result, or put it into the input"),
    "hollow-graph": Rule(
        "note", "Two fifths of the working nodes, or more, do nothing or return constants",
        "the graph runs and computes next to nothing", "let the nodes do their work"),
}  # fmt: skip
"""The rules by id, gravest first."""


HOLLOW_MIN: Final = 2
HOLLOW_SHARE: Final = 0.4
"""So many nodes, and so large a share of those that are no junction, make a graph hollow."""
FAULTS_MAX: Final = 500
"""So many faults of one graph are told."""


def graph_faults(run: Run, builders: Sequence[Builder]) -> list[GraphFault]:
    """The faults of these graphs, in the order of path and line."""
    reader = UpdateReader(run)
    own = [builder for builder in builders if builder.kind in BUILDERS]
    found = {one: None for builder in own for one in _Graph(run, builder, reader).faults()}
    order = list(RULES)
    return sorted(found, key=lambda one: (one.path, one.line, order.index(one.rule), one.text))


def counted_loops(run: Run, builders: Sequence[Builder]) -> Iterator[tuple[Builder, int, str]]:
    """Loops whose choice reads a number that one of their nodes counts up: the graph, the line of the choice, the
    number's key."""
    reader = UpdateReader(run)
    for builder in builders:
        graph = _Graph(run, builder, reader) if builder.kind in BUILDERS else None
        for line, key in graph.counted() if graph is not None else ():
            yield builder, line, key


class _Graph:
    """One graph, and what its nodes do."""

    def __init__(self, run: Run, builder: Builder, reader: UpdateReader) -> None:
        self._run = run
        self._builder = builder
        self._whole = not builder.unresolved
        self._leaving: dict[str, list[EdgeSeen]] = {name: [] for name in (START, END, *builder.nodes)}
        for edge in builder.edges:
            self._leaving.setdefault(edge.source, []).append(edge)
        self._functions = {name: _callable(node.action) for name, node in builder.nodes.items()}
        self._updates: dict[str, Updates] = {
            name: reader.read(function) for name, function in self._functions.items() if function is not None
        }
        self._reader = reader
        self._keys = channels(run, builder)

    def faults(self) -> Iterator[GraphFault]:
        """They, ``FAULTS_MAX`` at most."""
        found = self._all()
        last: GraphFault | None = None
        for last in islice(found, FAULTS_MAX):
            yield last
        if last is not None and next(found, None) is not None:
            text = f"more than {FAULTS_MAX} faults: the others are not told"
            yield self._fault(last.rule, self._builder.line, text)

    def _all(self) -> Iterator[GraphFault]:
        yield from self._topology()
        yield from self._routes()
        yield from self._undeclared()
        yield from self._parallel()
        yield from self._bodies()

    def _fault(self, rule: str, line: int, text: str, node: str = "", path: str = "") -> GraphFault:
        return GraphFault(
            rule=rule, severity=RULES[rule].severity, path=path or self._builder.path, line=line,
            graph=self._builder.name or self._builder.function, node=node, text=text,
        )  # fmt: skip

    # --- edges -------------------------------------------------------------------------------------------------

    def _topology(self) -> Iterator[GraphFault]:
        nodes = self._builder.nodes
        if not self._whole or not nodes:
            return
        unknown = [
            (edge, name)
            for edge in self._builder.edges
            for name in (edge.source, edge.target)
            if name not in nodes and name not in (START, END)
        ]
        for edge, name in unknown:
            text = f"the edge {edge.source} -> {edge.target}: there is no node {name!r}"
            yield self._fault("unknown-node", edge.line, text)
        if unknown:
            return
        if not self._leaving[START]:
            yield self._fault("no-entry", self._builder.line, "no edge leads from START to a node")
            return
        reached = self._reached(START)
        for name, node in nodes.items():
            if name not in reached and not name.startswith("__error_handler__"):
                yield self._fault("unreachable-node", node.line, f"{name}: no path from START leads to it", name)
        yield from self._endless(reached)
        yield from self._stuck()

    def _endless(self, reached: set[str]) -> Iterator[GraphFault]:
        """Nodes from which no way leads to END or to a node that nothing leaves, unless one on the way can wait."""
        entering: dict[str, list[str]] = defaultdict(list)
        for edge in self._builder.edges:
            entering[edge.target].append(edge.source)
        ends = [END, *(name for name in self._builder.nodes if not self._leaving[name])]
        ending = set(ends)
        waiting = list(ends)
        while waiting:
            for source in entering[waiting.pop()]:
                if source not in ending:
                    ending.add(source)
                    waiting.append(source)
        stuck = [name for name in self._builder.nodes if name in reached and name not in ending]
        if stuck and not self._builder.interrupted and all(self._follows(name) for name in stuck):
            text = f"{', '.join(stuck)}: no way leads from here to END"
            yield self._fault("endless-cycle", self._builder.nodes[stuck[0]].line, text, stuck[0])

    def _stuck(self) -> Iterator[GraphFault]:
        """Choices by which alone a loop is left, and which come out the same in each of its rounds."""
        for branch in self._builder.branches if not self._builder.interrupted else ():
            function, source = _callable(branch.path), branch.source
            ways = {edge.target for edge in self._leaving[source] if edge.line == branch.line}
            back = {one for one in ways if source in self._reached(one)}
            if function is None or not back or back == ways or not is_settled(function):
                continue
            inside = {one for way in back for one in self._reached(way) if source in self._reached(one)}
            others = {edge.target for name in inside - {source} for edge in self._leaving[name]}
            updates = self._reader.read(function)
            keys = {**updates.reads, **updates.soft}
            works = any(self._updates[name].writes for name in inside if name in self._updates)
            if works and keys and others <= inside and all(self._leaves(name, keys) for name in inside):
                text = f"{source}: the loop goes on by {', '.join(sorted(keys))}, which none of its nodes writes"
                yield self._fault("stuck-choice", branch.line, text, source)

    def counted(self) -> Iterator[tuple[int, str]]:
        """The choices that end a loop by a key which a node of it counts up."""
        for branch in self._builder.branches:
            function, source = _callable(branch.path), branch.source
            ways = {edge.target for edge in self._leaving[source] if edge.line == branch.line}
            back = {one for one in ways if source in self._reached(one)}
            if function is not None and back and back != ways:
                updates = self._reader.read(function)
                inside = {one for way in back for one in self._reached(way)}
                counters = {key for name in inside if (node := self._functions.get(name)) for key in counters_of(node)}
                yield from ((branch.line, key) for key in sorted(counters & {*updates.reads, *updates.soft}))

    def _leaves(self, name: str, keys: Container[str]) -> bool:
        """Whether a node surely leaves these keys as they are."""
        updates = self._updates.get(name)
        if updates is None or updates.open or updates.all_kept or updates.pauses:
            return False
        return not any(key in keys for key in (*updates.writes, *updates.changed))

    def _follows(self, name: str) -> bool:
        """Whether a node is read, and does not wait for a person."""
        return name in self._updates and not self._updates[name].pauses

    def _reached(self, start: str) -> set[str]:
        found, waiting = {start}, [start]
        while waiting:
            for edge in self._leaving.get(waiting.pop(), ()):
                if edge.target not in found:
                    found.add(edge.target)
                    waiting.append(edge.target)
        return found

    def _routes(self) -> Iterator[GraphFault]:
        """Values that a function returns and that the map of its edge does not have."""
        for branch in self._builder.branches:
            chosen = labels_chosen(self._run, branch)
            if chosen is None:
                continue
            returned, labels = chosen
            for value in returned:
                if value not in labels:
                    text = f"{branch.source}: the route {value!r} is not in the map ({', '.join(sorted(labels))})"
                    yield self._fault("unmapped-route", branch.line, text, branch.source)

    # --- the state -----------------------------------------------------------------------------------------------

    def _undeclared(self) -> Iterator[GraphFault]:
        keys = self._keys
        if keys is None:
            return
        sent = self._sent()
        for name, updates in self._updates.items():
            function = self._functions[name]
            path = function.scope.path if function is not None else ""
            if name not in sent:
                yield from self._reads(updates, name, path, keys)
            for key, line in updates.writes.items():
                if key not in keys:
                    text = f"{name} writes {key!r}, which {self._state} lacks"
                    yield self._fault("undeclared-write", line, text, name, path)
        for branch in self._builder.branches:
            function = _callable(branch.path)
            if function is not None and branch.source not in sent:
                updates, path = self._reader.read(function), function.scope.path
                written = self._updates[branch.source].writes if branch.source in self._updates else {}
                seen = {**keys, **dict.fromkeys(written, False)}  # a route sees what its own node has just written
                yield from self._reads(updates, branch.source, path, seen, function.name)

    def _reads(
        self, updates: Updates, node: str, path: str, keys: Mapping[str, bool], route: str = ""
    ) -> Iterator[GraphFault]:
        reader = f"the route {route}() of {node}" if route else node
        for key, line in {**updates.soft, **updates.reads}.items():
            if key not in keys:
                text = f"{reader} reads {key!r}, which {self._state} lacks"
                yield self._fault("undeclared-read", line, text, node, path)

    def _sent(self) -> set[str]:
        """Nodes that may get something else than the state: the packet of a ``Send``, also one of a ``Command``."""
        packets = "Send" in self._run.program.sources[self._builder.path].text
        return {one.target for one in self._builder.edges if one.kind == "send" or (one.kind == "goto" and packets)}

    @property
    def _state(self) -> str:
        return self._builder.state or "the state"

    def _parallel(self) -> Iterator[GraphFault]:
        keys = self._keys
        if keys is None:
            return
        entered = Counter(edge.target for edge in self._builder.edges)
        for source, edges in self._leaving.items():
            heads = self._heads(edges)
            branches = [list(self._chain(edge, entered)) for edge in heads] if len(heads) > 1 else []
            for key, one, other in _clashes(branches, self._updates):
                if keys.get(key) is False:
                    rare = any(key in self._updates[name].sometimes for name in (one, other))
                    write = "can both write" if rare else "both write"
                    text = f"{one} and {other} run side by side behind {source} and {write} {key!r}"
                    fault = self._fault("parallel-write", self._builder.nodes[other].line, text, other)
                    yield msgspec.structs.replace(fault, severity="warning") if rare else fault
            for edge in edges:
                if edge.kind == "send" and edge.target in self._updates:
                    line = self._builder.nodes[edge.target].line
                    for key in (one for one in self._updates[edge.target].writes if keys.get(one) is False):
                        text = f"{edge.target} runs once for each Send of {source}, and writes {key!r}"
                        yield self._fault("parallel-write", line, text, edge.target)

    def _heads(self, edges: Iterable[EdgeSeen]) -> list[EdgeSeen]:
        """The unconditional ways out of a node, without those that another one excludes."""
        plain = [edge for edge in edges if edge.kind == "plain" and edge.target != END]
        return [one for one in plain if not any(excluding(one.arms, other.arms) for other in plain)]

    def _chain(self, edge: EdgeSeen, entered: Mapping[str, int]) -> Iterator[str]:
        """The nodes of one branch, step by step, as far as it neither forks, joins nor chooses. ``entered``: how many
        edges lead to a node."""
        name, seen = edge.target, set[str]()
        while name in self._builder.nodes and name not in seen:
            seen.add(name)
            yield name
            leaving = self._leaving[name]
            if len(leaving) != 1 or leaving[0].kind != "plain":
                return
            name = leaving[0].target
            if entered[name] > 1:
                return

    # --- functions -------------------------------------------------------------------------------------------------

    def _bodies(self) -> Iterator[GraphFault]:
        hollow: list[str] = []
        working = [name for name in self._builder.nodes if not self._is_junction(name) and not self._is_canned(name)]
        for name, updates in self._updates.items():
            function = self._functions[name]
            if function is None:
                continue
            line, path = function.node.lineno, function.scope.path
            fixed = updates.hollow or (updates.fixed and not updates.reads and not updates.soft)
            if updates.idle and not self._is_junction(name):
                hollow.append(name)
                yield self._fault("empty-node", line, f"{name}: {function.name}() does nothing", name, path)
            elif fixed and updates.writes and not self._is_canned(name):
                hollow.append(name)
                text = f"{name}: {function.name}() always returns the same {', '.join(map(repr, updates.writes))}"
                yield self._fault("constant-node", line, text, name, path)
        hollow = [name for name in hollow if name in working]
        if len(hollow) >= max(HOLLOW_MIN, HOLLOW_SHARE * len(working)):
            text = f"{len(hollow)} of {len(working)} working nodes do nothing of their own: {', '.join(hollow)}"
            yield self._fault("hollow-graph", self._builder.line, text)

    def _is_canned(self, name: str) -> bool:
        """Whether a node is the other way of a choice, and the last one: a fixed reply, or a word of regret."""
        entering = [edge for edge in self._builder.edges if edge.target == name]
        chosen = bool(entering) and all(edge.kind in ("conditional", "goto") for edge in entering)
        return chosen and all(edge.target == END for edge in self._leaving[name])

    def _is_junction(self, name: str) -> bool:
        """Whether a node is there for its edges: branches meet in it, or it is where a way is chosen."""
        entering = sum(edge.target == name for edge in self._builder.edges)
        leaving = self._leaving[name]
        return entering > 1 or len(leaving) > 1 or any(edge.kind != "plain" for edge in leaving)


def _clashes(branches: Sequence[Sequence[str]], updates: Mapping[str, Updates]) -> Iterator[tuple[str, str, str]]:
    """Keys that nodes write in the same step of different branches: each node after the first, with the first."""
    for step in zip_longest(*branches):
        writers: dict[str, str] = {}
        for name in dict.fromkeys(one for one in step if one in updates):
            for key in updates[name].writes:
                if (first := writers.setdefault(key, name)) != name:
                    yield key, first, name


def _callable(value: Value) -> Func | None:
    """The function of the repository that runs when a value is called; None: another thing, or one of several."""
    found = function_of(value)
    return found if isinstance(found, Func) else None
