"""Tools for repositories, under the contract's names (docs/design.md §15.4); blocking.

with clone_repo("https://example.org/somebody/project") as path:
    for commit in extract_git_history(path):
        print(commit["timestamp"], commit["message"])
    print(analyze_graph_structure(path)["wiring_summary"])
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TypedDict

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.checkout import check_out
from pmagent.actors.audit.sources.repository.clone import fetch, opened
from pmagent.actors.audit.sources.repository.graph_child import GraphAnswer, GraphRequest
from pmagent.actors.audit.sources.repository.history import every_commit
from pmagent.actors.audit.sources.repository.wary import answered
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import CodeGraph, Finding
from pmagent.events.tree import remove_folder

__all__ = [
    "ClonedRepo", "CommitInfo", "GraphStructure", "SourceFailed", "analyze_graph_structure", "clone_repo",
    "extract_git_history",
]  # fmt: skip

_CHILD: Final = "pmagent.actors.audit.sources.repository.graph_child"
_decoder: Final = msgspec.json.Decoder(GraphAnswer)  # made where there is one thread
_REDUCER: Final = "reducer "


class CommitInfo(TypedDict):
    """A commit: its id, the first line of its message, the committer's time (RFC 3339)."""

    commit: str
    message: str
    timestamp: str


class GraphStructure(TypedDict):
    """The graphs that a repository builds. ``nodes``, ``edges`` (source, target) and what follows from them are of all
    graphs together, each once; ``graphs`` has them one by one, with lines, kinds of edges, and what could not be read.
    ``file_found``: there is a graph at all. ``error`` is "" unless that could not be found out. ``unparsed``: Python
    files that could not be read."""

    file_found: bool
    nodes: list[str]
    edges: list[tuple[str, str]]
    has_parallelism: bool
    reducers_used: list[str]
    error: str
    wiring_summary: str
    parallel_sources: list[str]
    fan_in_targets: list[str]
    graphs: list[dict[str, Any]]
    unparsed: list[dict[str, Any]]


class ClonedRepo(str):
    """The path of a cloned repository, which lies in a temporary folder of its own. ``close``, or the end of ``with``,
    removes it."""

    __slots__ = ("_folder",)
    _folder: str

    @classmethod
    def at(cls, path: str, folder: str) -> Self:
        """The clone at ``path``; ``folder`` is what is removed."""
        made = cls(path)
        made._folder = folder
        return made

    def close(self) -> None:
        """Remove it; once more does nothing."""
        with contextlib.suppress(FileNotFoundError):
            remove_folder(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def clone_repo(repo_url: str, limits: AuditLimits | None = None) -> ClonedRepo:
    """Clone the default branch of ``repo_url``, with its history, into a temporary folder, and check it out there:
    without submodules, hooks and filters, and with symbolic links as files that hold their targets.

    The path is the caller's to remove (``close``, ``with``). Raises SourceFailed, whose ``code`` says why: bad_url,
    not_found, auth, network, too_large, timed_out, git; nothing is left then."""
    limits = limits or AuditLimits()
    folder = tempfile.mkdtemp(prefix="pmagent-clone-")
    try:
        clone = fetch(repo_url, limits, folder)
        check_out(clone, limits)
    except BaseException:
        remove_folder(folder)
        raise
    return ClonedRepo.at(clone.top, folder)


def extract_git_history(repo_path: str) -> list[CommitInfo]:
    """All commits of the branch that is checked out at ``repo_path``, oldest first. Raises SourceFailed: not_found,
    git."""
    with tempfile.TemporaryDirectory(prefix="pmagent-git-") as folder:
        repository = opened(repo_path, AuditLimits(), folder)
        return [
            CommitInfo(commit=commit.commit, message=commit.message, timestamp=commit.timestamp)
            for commit in every_commit(repository.ask, "HEAD")
        ]


def analyze_graph_structure(repo_path: str, limits: AuditLimits | None = None) -> GraphStructure:
    """The LangGraph graphs that the Python files below ``repo_path`` build, read from their syntax trees in a limited
    process, without running them. Never raises for what stands in the files: ``error`` says what kept them from being
    read."""
    try:
        return _structure(read_graphs(repo_path, limits), "")
    except SourceFailed as failed:
        return _structure(GraphAnswer(graphs=[], reducers=[], unparsed=[]), failed.message)


def read_graphs(path: str, limits: AuditLimits | None = None) -> GraphAnswer:
    """The graphs of the Python files below the folder ``path``, and their faults, read in a limited process. Raises
    SourceFailed: not_found, timed_out, too_large, failed."""
    limits = limits or AuditLimits()
    folder = os.path.realpath(path)

    def request(skip: Mapping[str, str]) -> bytes:
        return msgspec.json.encode(
            GraphRequest(folder=folder, file_bytes=limits.file_bytes, files=limits.files, skip=dict(skip))
        )

    if not os.path.isdir(folder):
        raise SourceFailed("not_found", "the repository's path is no folder", "clone it first")
    return _decoder.decode(answered(_CHILD, request, limits, readable=(folder,)))


def _structure(answer: GraphAnswer, error: str) -> GraphStructure:
    graphs = answer.graphs
    parallel = _each(source for graph in graphs for source in graph.parallel_sources)
    return GraphStructure(
        file_found=bool(graphs),
        nodes=_each(node.name for graph in graphs for node in graph.nodes),
        edges=list(dict.fromkeys((edge.source, edge.target) for graph in graphs for edge in graph.edges)),
        has_parallelism=bool(parallel),
        reducers_used=_each(_reducer(finding) for finding in answer.reducers),
        error=error,
        wiring_summary="; ".join(_wiring(graph) for graph in graphs),
        parallel_sources=parallel,
        fan_in_targets=_each(target for graph in graphs for target in graph.fan_in_targets),
        graphs=[msgspec.to_builtins(graph) for graph in graphs],
        unparsed=[msgspec.to_builtins(one) for one in answer.unparsed],
    )


def _wiring(graph: CodeGraph) -> str:
    edges = ", ".join(f"{edge.source} -> {edge.target}" for edge in graph.edges)
    return f"{graph.path}:{graph.line}: {len(graph.nodes)} nodes, {len(graph.edges)} edges: {edges}"


def _reducer(finding: Finding) -> str:
    """The reducer's name: the finding's text begins "reducer <name> of <field>", or with the name."""
    first = finding.text.partition("\n")[0]
    if not first.startswith(_REDUCER):
        return first.replace(",", " ").split()[0]
    named = first.removeprefix(_REDUCER)
    return named.rpartition(" of ")[0] or named


def _each(names: Any) -> list[str]:
    return list(dict.fromkeys(names))
