"""The process that reads the graphs of a folder: ``python -I -m pmagent.actors.audit.sources.repository.graph_child``,
run by ``limited``."""

from __future__ import annotations

import msgspec

from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.detectors.code.state import StateReader
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.actors.audit.sources.repository import announced
from pmagent.actors.audit.sources.repository.folder import python_files
from pmagent.contracts.audit_facts import CodeGraph, Finding, GraphFault, Unparsed


class GraphRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Read the Python files below ``folder``: at most ``files`` of at most ``file_bytes``, without ``skip``."""

    folder: str
    file_bytes: int
    files: int
    skip: dict[str, str] = {}


class GraphAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Graphs, what is wrong with them, the reducers of their states, and what could not be read."""

    graphs: list[CodeGraph]
    faults: list[GraphFault] = []
    reducers: list[Finding]
    unparsed: list[Unparsed]


def answer(request: bytes) -> bytes:
    """Do what is asked."""
    asked = msgspec.json.decode(request, type=GraphRequest)
    graphs, state = GraphReader(), StateReader()
    unparsed: list[Unparsed] = []

    def use(source: Source) -> None:
        if source.reason:
            unparsed.append(Unparsed(path=source.path, line=source.line, reason=source.reason))
        if source.tree is not None:
            graphs.take(source)
            state.take(source)

    for path, content in python_files(asked.folder, asked.file_bytes, asked.files):
        if reason := asked.skip.get(path):
            unparsed.append(Unparsed(path=path, line=0, reason=reason))
        else:
            announced.take(path, content, use)
    announced.finish()
    reducers = [finding for finding in state.findings() if finding.goal == "state.reducers"]
    answered = GraphAnswer(graphs=graphs.graphs(), faults=graphs.faults(), reducers=reducers, unparsed=unparsed)
    return msgspec.json.encode(answered)


if __name__ == "__main__":
    announced.answering(answer)
