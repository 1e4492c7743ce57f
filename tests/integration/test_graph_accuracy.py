"""Graphs read from source are those that LangGraph draws: the benchmark's programs, held to its bar."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import StateGraph

from benchmarks.graph_accuracy import (
    END,
    START,
    Drawn,
    as_drawn,
    drawn,
    drawn_graph,
    main,
    measure,
    programs,
    read_graphs,
    total,
)
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.contracts.audit_facts import CodeGraph, GraphEdge, GraphNode
from tests.support.cases import each
from tests.support.effort import examples


@pytest.fixture(autouse=True)
def _no_warnings_of_the_programs() -> Iterator[None]:
    """The programs use deprecated parts of LangGraph too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_precision_and_recall_of_nodes_and_edges_reach_the_bar() -> None:
    results = {name: measure(name) for name in programs()}
    assert len(results) >= 35
    whole = total(results.values())
    told = {name: (one.wrong, one.missed) for name, one in results.items() if one.wrong or one.missed}
    assert min(whole.nodes.precision, whole.nodes.recall) >= 0.95, told
    assert min(whole.edges.precision, whole.edges.recall) >= 0.95, told
    assert min(one.nodes.true for one in results.values()) > 0
    for name in told:
        assert any(one.unresolved for one in read_graphs(name)), f"{name}: what is not read is said not to be"


def test_conditional_edges_are_measured_too() -> None:
    assert len([name for name in programs() if any(edge[2] for edge in drawn_graph(name).edges)]) >= 20


def test_the_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chain", "send"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["program", "chain", "send", "all"]
    assert lines[1].split()[1:] == ["1.000"] * 4 + ["3", "4"]


def graph(*edges: tuple[str, str, str]) -> CodeGraph:
    names = dict.fromkeys(name for edge in edges for name in edge[:2] if name not in (START, END))
    return CodeGraph(
        path="a.py",
        line=1,
        name="",
        builder="StateGraph",
        state="",
        nodes=[GraphNode(name=name, line=1) for name in names],
        edges=[GraphEdge(source=one, target=other, line=1, kind=kind) for one, other, kind in edges],  # type: ignore[arg-type]
        parallel_sources=[],
        fan_in_targets=[],
        compiled=True,
    )


@each("read, drawn", [
    ([(START, "a", "plain")], {(START, "a", False), ("a", END, False)}),
    ([(START, "a", "plain"), ("b", "c", "plain")], {(START, "a", False), ("a", END, False)}),
    (
        [(START, "a", "plain"), ("a", "b", "plain"), ("a", "b", "send"), ("a", END, "plain")],
        {(START, "a", False), ("a", "b", True), ("b", END, False)},
    ),
    ([(START, "a", "plain"), ("a", END, "goto")], {(START, "a", False), ("a", END, False)}),
])
def test_what_was_read_is_drawn_as_get_graph_draws(
    read: list[tuple[str, str, str]], drawn: set[tuple[str, str, bool]]
) -> None:
    found = as_drawn(graph(*read))
    assert found == Drawn(found.nodes, frozenset(drawn))


class State(TypedDict):
    """Of the graphs that are made by chance."""

    way: str


_NAMES = ["a", "b", "c", "d", "e"]
_LINKS = st.lists(st.tuples(st.sampled_from([START, *_NAMES]), st.sampled_from([*_NAMES, END])), max_size=8)
_CHOICES = st.dictionaries(
    st.sampled_from([START, *_NAMES]),
    st.dictionaries(st.sampled_from(["yes", "no"]), st.sampled_from([*_NAMES, END]), min_size=1, max_size=2),
    max_size=2,
)


@settings(max_examples=examples(60))
@given(_LINKS, _CHOICES, st.sampled_from(_NAMES))
def test_any_graph_is_drawn_as_langgraph_draws_it(
    links: list[tuple[str, str]], choices: dict[str, dict[str, str]], entry: str
) -> None:
    """The same graph, built and read: what is compared by the benchmark is the same thing on both sides."""
    builder = StateGraph(State)
    text = ["from langgraph.graph import StateGraph", "builder = StateGraph(State)"]

    def add(method: str, *args: Any) -> None:
        getattr(builder, method)(*args)
        spelled = ", ".join("lambda state: state['way']" if callable(one) else repr(one) for one in args)
        text.append(f"builder.{method}({spelled})")

    for name in _NAMES:
        add("add_node", name, lambda state: state)
    for source, target in [(START, entry), *links]:
        if (source, target) != (START, END):
            add("add_edge", source, target)
    for source, ways in choices.items():
        add("add_conditional_edges", source, lambda state: state["way"], ways)
    reader = GraphReader()
    source_text = "\n".join(text)
    reader.take(Source("made.py", source_text, ast.parse(source_text), "code"))
    (found,) = reader.graphs()
    assert as_drawn(found) == drawn(builder.compile())
