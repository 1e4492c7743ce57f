"""Which findings are about code that runs and whose results are used, and what that shows by itself; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from pmagent.actors.audit.detectors.code.outcome import STAGE
from pmagent.actors.audit.detectors.code.prompts import ROLE, Prompt
from pmagent.actors.audit.detectors.code.reach import ReachReader
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.contracts.audit_facts import Finding, GraphFault

_RETURNED: Final = 0.6
"""So sure the table is that what a public function returns is a result: of a library it is, of a program it is none."""
_OF_PROGRAMS: Final = ("state", "graph", "tools", "output", "judges", "justice", "agent", "outcome")
"""Families of goals that are met by what runs."""
_BY_RESULT: Final = ("output", "judges", "justice")
"""Of these, those that are met only where the result is used."""
_FAULTS: Final = {
    "no-entry": "graph.dead_nodes",
    "unreachable-node": "graph.dead_nodes",
    "endless-cycle": "graph.no_end",
    "stuck-choice": "graph.no_end",
    "unknown-node": "graph.broken_route",
    "unmapped-route": "graph.broken_route",
    "undeclared-read": "state.undeclared",
    "undeclared-write": "state.undeclared",
    "parallel-write": "state.parallel_writes",
    "empty-node": "graph.empty_nodes",
    "constant-node": "graph.empty_nodes",
    "hollow-graph": "graph.hollow",
}
"""The goal that a graph's fault is a finding of, by its rule."""
_ENDLESS: Final = ("endless-cycle", "stuck-choice")
_CLASS: Final = re.compile(r"\b(?:class|in) ([A-Z]\w*)")
"""The class of a finding about the state."""
_REDUCER: Final = re.compile(r"reducer (\w+) of [^\n]*\n(?:.*\n)*?.*\b(?:list|dict|set|List|Dict|Set|Sequence)\[")
"""The finding for a reducer whose values hold several."""
_FILES: Final = ("open", "read_text", "read_bytes", "write_text", "write_bytes")
"""Reading or writing files can be safe or not; a library of plain functions does neither."""
_MANIFEST: Final = "langgraph.json"


class Connection:
    """Holds findings against what the entry points reach."""

    def __init__(
        self, reach: ReachReader, graphs: GraphReader, personas: Sequence[Prompt], files: Sequence[str],
        read: Callable[[str], bytes | None],
    ) -> None:
        self._reach = reach
        self._graphs = graphs
        self._personas = personas
        self._stages: list[Finding] = []
        self._unused: dict[str, list[tuple[int, int, str]]] = {}
        self._unread_names = [
            one for one in reach.lost
            if one.kind == "global" and not reach.library and one.name not in reach.offered_by_name
        ]  # fmt: skip
        self._results = [one for one in reach.lost if one.kind not in ("global", "key")]
        for one in (*self._results, *self._unread_names):
            self._unused.setdefault(one.path, []).append((one.first, one.last, one.says))
        unread = [one for one in personas if one.variable and not reach.mentions(one.variable)]
        self._mute = bool(personas) and len(unread) == len(personas)
        self._dead = [*graphs.dead_places(), *((one.path, one.line, one.line) for one in unread)]
        self._manifests = [path for path in files if path.rpartition("/")[2] == _MANIFEST and _is_object(read(path))]

    def findings(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """The findings, each with whether it is reached; then what graphs and unused results show."""
        every = list(found)
        self._stages = [one for one in every if one.goal == STAGE]
        kept = (one for one in every if one.goal != STAGE)
        seen = [self._held(one) for one in kept if self._reach.library or not _is_returned(one)]
        runs = [one for one in seen if one.goal == "graph.run"]
        yield from (one for one in seen if one.goal != "graph.run")
        yield from map(self._held, self._graphs.counted())
        yield from self._runs(runs)
        yield from self._bench()
        held = ("tools.no_unsafe_calls", "security.")
        acts = bool(self._graphs.graphs()) or any(map(self._reach.mentions, _FILES))
        if self._reach.works and acts and not any(one.goal.startswith(held) for one in seen):
            says = "no call that starts a process, evaluates code or loads objects"
            yield Finding(goal="tools.no_unsafe_calls", path=".", line=0, text=says, confidence=0.6)
        for fault in self._graphs.faults():
            yield from self._of_fault(fault)
        for body in () if self._reach.library else self._reach.idle():
            text = f"{body.name}: {'does nothing' if body.stub else 'nothing that runs names it'}"
            yield Finding(goal="repo.idle", path=body.path, line=body.first, text=text, confidence=0.9)
        yield from self._wasted(seen)
        yield from self._forgotten(seen)
        yield from self._unasked(seen)

    def _of_fault(self, fault: GraphFault) -> Iterator[Finding]:
        """The fault as a finding, and what follows from it."""
        yield _of_fault(fault)
        if fault.rule in _ENDLESS and self._reach.reached(fault.path, fault.line):
            yield _of_fault(fault, "agent.endless")
            text = f"{fault.text}: then nobody gets what the graph computed"
            yield Finding(goal="outcome.unused", path=fault.path, line=fault.line, text=text, confidence=0.9)
        if fault.rule == "undeclared-read" and "the route " in fault.text:
            text = f"{fault.text}: so it always goes the same way"
            yield Finding(goal="graph.broken_route", path=fault.path, line=fault.line, text=text, confidence=0.9)
        if fault.rule in ("constant-node", "empty-node"):
            name = fault.text.rpartition(": ")[2].partition("()")[0]
            text = f"{name}: always returns the same"
            yield Finding(goal="repo.idle", path=fault.path, line=fault.line, text=text, confidence=0.9)
        if fault.rule == "unreachable-node" and fault.node:
            text = f"{fault.node}: no edge leads to this node"
            yield Finding(goal="repo.idle", path=fault.path, line=fault.line, text=text, confidence=0.9)

    def _wasted(self, seen: Sequence[Finding]) -> Iterator[Finding]:
        """Results that are computed, and that nothing uses."""
        judging = [one for one in seen if one.goal.startswith("justice.")]
        structured = {(one.path, one.line) for one in seen if one.goal == "output.structured"}
        for one in (*self._results, *self._unread_names):
            if (one.path, one.first) in structured:
                yield Finding(goal="output.unused_schema", path=one.path, line=one.first, text=one.says, confidence=0.9)
        for one in self._reach.lost:
            if one.kind != "global":
                yield Finding(goal="outcome.unused", path=one.path, line=one.first, text=one.says, confidence=0.8)
        for one in self._results:
            if any(other.path == one.path and abs(other.line - one.first) < _NEAR for other in judging):
                yield Finding(goal="justice.without_effect", path=one.path, line=one.first, text=one.says,
                              confidence=0.8)  # fmt: skip

    def _forgotten(self, seen: Sequence[Finding]) -> Iterator[Finding]:
        """Reducers of many values that return one of those that they are given, and nothing of the other."""
        for one in seen:
            named = _REDUCER.match(one.text) if one.goal == "state.reducers" else None
            for work, name in self._reach.arrivals.forgets(named[1]) if named is not None else ():
                text = f"{work.name}() returns nothing of {name}: of what is written side by side the rest is lost"
                for goal in ("state.parallel_writes", "outcome.unused"):
                    yield Finding(goal=goal, path=work.path, line=work.first, text=text, confidence=0.8)

    def _unasked(self, seen: Sequence[Finding]) -> Iterator[Finding]:
        """Nodes that send something before anybody is asked, or though nobody is."""
        asked = [one for one in seen if one.goal == "agent.approval" and one.reached]
        arrivals = self._reach.arrivals
        for graph, name, asks in self._graphs.unasked(arrivals.sending, arrivals.asking):
            if self._reach.reached(graph.path, graph.line) and (asks or not asked):
                why = "a way leads to it past who asks" if asks else "nobody is asked before"
                text = f"{name} changes something elsewhere, and {why}"
                sure = 0.9 if asks else 0.5
                yield Finding(goal="agent.unasked", path=graph.path, line=graph.line, text=text, confidence=sure)

    def _held(self, finding: Finding) -> Finding:
        family = finding.goal.partition(".")[0]
        if family not in _OF_PROGRAMS:
            return finding
        reached = self._reach.reached(finding.path, finding.line) and self._is_named(finding)
        if finding.goal == "agent.approval" and finding.text.partition("\n")[0].endswith(", by its name"):
            reached = reached and not self._reach.arrivals.only_tells(finding.path, finding.line)
        reached = reached and not (self._mute and finding.goal == "judges.parallel")
        places = [(first, last) for path, first, last in self._dead if path == finding.path]
        if family in _BY_RESULT:
            places += [(first, last) for first, last, _says in self._unused.get(finding.path, ())]
        if reached and not any(first <= finding.line <= last for first, last in places):
            return finding
        return msgspec.structs.replace(finding, reached=False)

    def _is_named(self, finding: Finding) -> bool:
        """Whether reached code names the class that a finding about the state is about."""
        named = _CLASS.search(finding.text) if finding.goal.startswith("state.") and not self._reach.library else None
        return named is None or self._reach.mentions(named[1])

    def _runs(self, runs: Sequence[Finding]) -> Iterator[Finding]:
        """That graphs are run, where there are any; or that nothing runs them. A library's are run by others."""
        built = [one for one in self._graphs.graphs() if one.builder]
        if not built:
            yield from self._without_graph()
            return
        reached = [one for one in built if self._reach.reached(one.path, one.line)]
        if reached and (self._reach.library or self._manifests):
            one = reached[0]
            text = f"{self._manifests[0]} names it" if self._manifests else "a library's graph, for others to run"
            yield Finding(goal="graph.run", path=one.path, line=one.line, text=text, confidence=0.8)
        elif reached and any(one.reached for one in runs):
            yield from (one for one in runs if one.reached)
        else:
            why = "no entry point reaches it" if not reached else "no entry point invokes it"
            for one in built:
                text = f"{one.name or one.builder} is built here, and {why}"
                yield Finding(goal="graph.idle", path=one.path, line=one.line, text=text, confidence=0.9)

    def _without_graph(self) -> Iterator[Finding]:
        """The stages of a program that has no graph: functions that start several workers, and wait for them."""
        stages = [one for one in self._stages if self._reach.reached(one.path, one.line)]
        for goal in ("graph.fan_out", "graph.fan_in", "graph.run") if stages else ():
            yield from (msgspec.structs.replace(one, goal=goal) for one in stages)
        if len(stages) > 1:
            yield msgspec.structs.replace(stages[-1], goal="graph.two_stages")

    def _bench(self) -> Iterator[Finding]:
        """Whether nodes that judge run side by side, or one behind the other."""
        names = {word for one in self._personas for word in (one.persona, one.said) if word}
        for graph in self._graphs.graphs():
            bench = [one.name for one in graph.nodes if _judges(one.name, names)]
            side_by_side = [
                edge for edge in graph.edges
                if edge.source in graph.parallel_sources and (edge.target in bench or edge.kind == "send")
            ]
            rows = [edge for edge in graph.edges if edge.source in bench and edge.target in bench]
            again = [edge for edge in graph.edges if edge.source == edge.target and edge.kind != "plain"]
            for edge in again if self._reach.reached(graph.path, graph.line) else []:
                text = f"{edge.source} is run again where {edge.label or 'its answer'} asks for it"
                yield Finding(goal="output.retried", path=graph.path, line=edge.line, text=text, confidence=0.7)
            if rows and len(rows) >= len(bench) - 1:
                chain = " -> ".join([rows[0].source, *(one.target for one in rows)])
                yield Finding(goal="judges.in_sequence", path=graph.path, line=rows[0].line, text=chain, confidence=0.9)
            elif len({edge.target for edge in side_by_side}) > 1 or any(one.kind == "send" for one in side_by_side):
                text = f"{side_by_side[-1].source} leads to {', '.join(dict.fromkeys(e.target for e in side_by_side))}"
                yield self._held(Finding(goal="judges.parallel", path=graph.path, line=side_by_side[0].line, text=text,
                                         confidence=0.9))  # fmt: skip


def _is_returned(finding: Finding) -> bool:
    return finding.goal == "outcome.delivered" and finding.confidence == _RETURNED


def _judges(node: str, personas: set[str]) -> bool:
    """Whether a node sits on the bench, by its name or because a persona is called so."""
    plain = node.replace("_", " ").replace("-", " ").lower()
    return ROLE.search(node) is not None or plain in personas


_NEAR: Final = 40
"""So near a finding about scores, in lines, a result that is not used is one of theirs."""


def _of_fault(fault: GraphFault, goal: str = "") -> Finding:
    sure = {"error": 1.0, "warning": 0.9, "note": 0.8}[fault.severity]
    if (fault.rule, fault.severity) == ("parallel-write", "warning"):
        sure = 0.5  # only where both take the way that writes, which may be that of a failure
    return Finding(goal=goal or _FAULTS[fault.rule], path=fault.path, line=fault.line, text=fault.text, confidence=sure)


def _is_object(content: bytes | None) -> bool:
    try:
        return isinstance(json.loads(content or b""), dict)
    except (ValueError, RecursionError):
        return False


def counted(found: Sequence[Finding]) -> int:
    """How many findings of a goal count: those that are reached; of those that no code reaches none does."""
    return sum(one.reached for one in found)
