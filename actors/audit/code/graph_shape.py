"""What the shape of a graph says: parallel branches, where they are joined, stages, ways for failure; pure.

- A node is a **parallel source** when it has two or more unconditional successors (END does not count, nor do two that
  stand in branches of the program of which only one is taken), or when what it goes on with is mapped: ``Send``, or a
  conditional edge or command that goes to several at once. A conditional edge alone is none: it takes one of its ways.
- A **fan-in** is a node with two or more predecessors. A predecessor that the node itself leads to is a way back (a
  retry, an agent's tools) and does not count. What follows a mapped node joins its copies, which count as many.
- A **join** is a fan-in of which two predecessors are reached from one parallel source over different branches of it.
- **Two stages** are two parallel sources with different joins, the second of which begins where the first is joined, or
  behind it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from actors.audit.code.graph_values import END, START, EdgeSeen, excluding

_FAILURE: Final = frozenset(
    [
        "abort",
        "aborted",
        "degraded",
        "dead",
        "error",
        "errors",
        "errored",
        "escalate",
        "except",
        "exception",
        "exceptions",
        "fail",
        "failed",
        "failing",
        "failure",
        "failures",
        "fails",
        "fallback",
        "incomplete",
        "insufficient",
        "invalid",
        "missing",
        "retries",
        "retry",
        "retrying",
        "timeout",
        "unavailable",
    ]
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EVIDENCE: Final = "evidence"
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


def _parallel(leaving: Sequence[EdgeSeen]) -> bool:
    if any(edge.kind == "send" or (edge.many and edge.target != END) for edge in leaving):
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
    """The edges without those that lead back to where a walk from START has come from."""
    result: dict[str, list[str]] = {name: [] for name in names}
    done: set[str] = set()
    for root in dict.fromkeys((START, *result)):
        if root not in result or root in done:
            continue
        done.add(root)
        path, waiting = {root}, [(root, iter(dict.fromkeys(targets[root])))]
        while waiting:
            name, rest = waiting[-1]
            target = next(rest, None)
            if target is None:
                waiting.pop()
                path.discard(name)
            elif target not in path:
                result[name].append(target)
                if target not in done:
                    done.add(target)
                    path.add(target)
                    waiting.append((target, iter(dict.fromkeys(targets[target]))))
    return result


def _reached(start: str, forward: Mapping[str, Sequence[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting and len(found) < _REACH_MAX:
        for target in forward.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _joins(
    source: str,
    leaving: Sequence[EdgeSeen],
    forward: Mapping[str, Sequence[str]],
    meet: Mapping[str, Sequence[str]],
    mapped: set[str],
) -> list[tuple[str, str]]:
    """The nodes at which branches of a parallel source meet: those first met of each way only."""
    unconditional = [edge for edge in leaving if edge.kind in ("plain", "send") or edge.many]
    heads = list(dict.fromkeys(edge.target for edge in unconditional if edge.target != END))[:_SOURCES_MAX]
    reach = {head: _reached(head, forward) for head in heads}
    found = []
    for node, before in meet.items():
        over = {(head, name) for head in heads for name in before if name in reach[head] and head != node}
        several = any(one[0] != other[0] and one[1] != other[1] for one in over for other in over)
        if several or any(name in mapped and name in heads for name in before):
            found.append(node)
    behind = {node: _reached(node, forward) for node in found[:_SOURCES_MAX]}
    first = [node for node in behind if not any(other != node and node in reached for other, reached in behind.items())]
    return [(source, node) for node in first]


def _stages(joins: Sequence[tuple[str, str]], forward: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    for source, node in joins:
        behind = _reached(node, forward)
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


def speaks_of_failure(text: str) -> bool:
    """Whether a name or label has a word for failure or for what is missing."""
    return any(word.lower() in _FAILURE for word in _WORD.findall(text[:1_000]))


def decides_by_failure(function: ast.AST) -> bool:
    """Whether a condition in a function is about something named for failure, or about whether there is evidence."""
    tests = [node.test for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp)]
    return any(_about_failure(test) for test in tests)


def _about_failure(test: ast.expr) -> bool:
    for node in ast.walk(test):
        text = ""
        if isinstance(node, ast.Name):
            text = node.id
        elif isinstance(node, ast.Attribute):
            text = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if text and (speaks_of_failure(text) or _EVIDENCE in text.lower()):
            return True
    return False
