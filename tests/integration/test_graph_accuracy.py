"""Graphs read from source are those that LangGraph draws: the benchmark's programs, held to its bar."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from benchmarks.graph_accuracy import (
    END,
    START,
    Drawn,
    as_drawn,
    drawn_graph,
    main,
    measure,
    programs,
    read_graphs,
    total,
)
from contracts.audit_facts import CodeGraph, GraphEdge, GraphNode


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
    conditional = [name for name in programs() if any(edge[2] for edge in drawn_graph(name).edges)]
    assert len(conditional) >= 20


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


@pytest.mark.parametrize(
    ("read", "drawn"),
    [
        ([(START, "a", "plain")], {(START, "a", False), ("a", END, False)}),
        ([(START, "a", "plain"), ("b", "c", "plain")], {(START, "a", False), ("a", END, False)}),
        (
            [(START, "a", "plain"), ("a", "b", "plain"), ("a", "b", "send"), ("a", END, "plain")],
            {(START, "a", False), ("a", "b", True), ("b", END, False)},
        ),
        ([(START, "a", "plain"), ("a", END, "goto")], {(START, "a", False), ("a", END, False)}),
    ],
)
def test_what_was_read_is_drawn_as_get_graph_draws(
    read: list[tuple[str, str, str]], drawn: set[tuple[str, str, bool]]
) -> None:
    found = as_drawn(graph(*read))
    assert found == Drawn(found.nodes, frozenset(drawn))
