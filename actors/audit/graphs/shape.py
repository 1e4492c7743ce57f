"""The shape of a graph: parallel branches, where they are joined, stages, ways for failure; pure.

- A node is a **parallel source** when it has two or more unconditional successors (END does not count, nor do two that
  stand in branches of the program of which only one is taken), or when what it goes on with is mapped: ``Send``, or a
  conditional edge or command that goes to several nodes at once. A conditional edge that takes one of its ways is none.
- A **fan-in** is a node with two or more predecessors. A way back does not count as one: an edge to a node that leads
  here itself and is nearer to START (a retry, an agent's tools). A node that follows a mapped node joins its copies,
  which count as many.
- A **join** is a fan-in of which two predecessors are reached from one parallel source over different branches of it.
- **Two stages** are two parallel sources with different joins, the second of which begins where the first is joined, or
  behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.graphs.values import END, START, EdgeSeen, excluding

_SOURCES_MAX: Final = 64
_REACH_MAX: Final = 200_000


class Shape(NamedTuple):
    """``sources`` and ``fan_ins`` in the order in which nodes are first named; ``joins``: pairs of a source and the
    node that joins it; ``stages``: two of them, one behind the other."""

    sources: tuple[str, ...]
    fan_ins: tuple[str, ...]
    joins: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, str], ...]


def shape(edges: Sequence[EdgeSeen]) -> Shape:
    """The shape of a graph with these edges."""
    names = list(dict.fromkeys(name for edge in edges for name in (edge.source, edge.target)))
    leaving: dict[str, list[EdgeSeen]] = defaultdict(list)
    for edge in edges:
        leaving[edge.source].append(edge)
    sources = tuple(name for name in names if _parallel(leaving[name]))
    forward = _forward(names, {name: [edge.target for edge in leaving[name]] for name in names})
    mapped = {edge.target for edge in edges if edge.kind == "send"}
    before: dict[str, list[str]] = defaultdict(list)
    for source, targets in forward.items():
        for target in targets:
            before[target].append(source)
    fan_ins = tuple(name for name in names if name != END and _comes_together(before[name], mapped))
    meet = {name: before[name] for name in fan_ins}
    joins = tuple(
        pair for source in sources[:_SOURCES_MAX] for pair in _joins(source, leaving[source], forward, meet, mapped)
    )
    return Shape(sources, fan_ins, joins, _stages(joins, forward))


def live(edges: Sequence[EdgeSeen]) -> list[EdgeSeen]:
    """The edges that can be taken: those of nodes to which a path leads from START."""
    targets: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        targets[edge.source].append(edge.target)
    found = reached(START, targets)
    return [edge for edge in edges if edge.source in found]


def _parallel(leaving: Sequence[EdgeSeen]) -> bool:
    at_once = {edge.target for edge in leaving if edge.many and edge.target != END}
    if len(at_once) > 1 or any(edge.kind == "send" for edge in leaving):
        return True
    plain = [edge for edge in leaving if edge.kind == "plain" and edge.target != END][:_SOURCES_MAX]
    return any(
        one.target != other.target and not excluding(one.arms, other.arms)
        for number, one in enumerate(plain)
        for other in plain[number + 1 :]
    )


def _comes_together(before: Sequence[str], mapped: set[str]) -> bool:
    return len(before) > 1 or any(name in mapped for name in before)


def _forward(names: Iterable[str], targets: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The edges without ways back: those to a node that leads here itself and is nearer to START."""
    levels = _levels(names, targets)
    back: dict[str, set[str]] = {}
    result: dict[str, list[str]] = {}
    for name in names:
        result[name] = []
        for target in dict.fromkeys(targets[name]):
            if levels[target] < levels[name] and target not in back:
                back[target] = reached(target, targets)
            if target != name and not (levels[target] < levels[name] and name in back[target]):
                result[name].append(target)
    return result


def _levels(names: Iterable[str], targets: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many edges each node is away from START; what is not reached from there, from where it begins."""
    entered = {target for several in targets.values() for target in several}
    levels: dict[str, int] = {}
    for root in (START, *(name for name in names if name not in entered), *names):
        if root in levels:
            continue
        levels[root] = 0
        waiting = [root]
        for name in waiting:
            for target in targets.get(name, ()):
                if target not in levels:
                    levels[target] = levels[name] + 1
                    waiting.append(target)
    return levels


def reached(start: str, forward: Mapping[str, Sequence[str]]) -> set[str]:
    """The node and all to which a path leads from it."""
    found, waiting = {start}, [start]
    while waiting and len(found) < _REACH_MAX:
        for target in forward.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _joins(
    source: str, leaving: Sequence[EdgeSeen], forward: Mapping[str, Sequence[str]], meet: Mapping[str, Sequence[str]],
    mapped: set[str],
) -> list[tuple[str, str]]:
    """The nodes at which branches of a parallel source meet: those first met of each way only."""
    unconditional = [edge for edge in leaving if edge.kind in ("plain", "send") or edge.many]
    heads = [
        one for one in dict.fromkeys(edge.target for edge in unconditional) if one in forward[source] and one != END
    ]
    heads = heads[:_SOURCES_MAX]
    reach = {head: reached(head, forward) for head in heads}
    found = []
    for node, before in meet.items():
        over = {(head, name) for head in heads for name in before if name in reach[head] and head != node}
        several = any(one[0] != other[0] and one[1] != other[1] for one in over for other in over)
        if several or any(name in mapped and name in heads for name in before):
            found.append(node)
    behind = {node: reached(node, forward) for node in found[:_SOURCES_MAX]}
    first = [node for node in behind if not any(other != node and node in after for other, after in behind.items())]
    return [(source, node) for node in first]


def _stages(joins: Sequence[tuple[str, str]], forward: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    for source, node in joins:
        behind = reached(node, forward)
        for other, last in joins:
            if other != source and last != node and other in behind and last in behind:
                return ((source, node), (other, last))
    return ()


def linear(nodes: Iterable[str], edges: Sequence[EdgeSeen]) -> bool:
    """Whether a graph of three or more nodes is one chain: nothing parallel, nothing chosen, nothing that goes back."""
    if any(edge.kind != "plain" for edge in edges):
        return False
    pairs = {(edge.source, edge.target) for edge in edges if edge.source != START and edge.target != END}
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    entries = {edge.target for edge in edges if edge.source == START}
    count = len(set(nodes))
    single = len(set(sources)) == len(sources) and len(set(targets)) == len(targets) and len(entries) <= 1
    return count >= 3 and single and len(pairs) == count - 1 and not entries & set(targets)
