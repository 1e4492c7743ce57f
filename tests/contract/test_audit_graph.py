"""The audit's graph, nodes and tools are the specification's: names, signatures, fan-outs, fan-ins, ways out."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.graph.state import CompiledStateGraph

import pmagent.audit
from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.graphs.reader import GraphReader
from tests.support.cases import each

DETECTIVES = ("repo_investigator", "doc_analyst", "vision_inspector")
BENCH = ("prosecutor", "defense", "tech_lead")
START, END = "__start__", "__end__"


def ways() -> dict[str, dict[str, bool]]:
    """Where the compiled graph leads from each node, and whether on a condition."""
    found: dict[str, dict[str, bool]] = {}
    for edge in pmagent.audit.compile_audit_graph().get_graph().edges:
        found.setdefault(edge.source, {})[edge.target] = edge.conditional
    return found


def test_it_is_a_compiled_state_graph() -> None:
    assert isinstance(pmagent.audit.compile_audit_graph(), CompiledStateGraph)


def test_both_stages_fan_out_and_are_joined() -> None:
    edges = ways()
    assert set(edges[START]) == {"context_builder"}
    assert set(edges["context_builder"]) == {*DETECTIVES, END}
    assert [edges[one] for one in DETECTIVES] == [{"evidence_aggregator": False}] * 3
    assert set(edges["evidence_aggregator"]) == {*BENCH, END}
    assert [edges[one] for one in BENCH] == [{"deliberation": False}] * 3
    assert edges["chief_justice"] == {END: False}


def test_where_evidence_is_missing_or_a_node_failed_an_edge_leads_away() -> None:
    edges = ways()
    assert edges["context_builder"][END]
    assert edges["evidence_aggregator"][END]
    assert edges["deliberation"] == {END: True, "chief_justice": True, **dict.fromkeys(BENCH, True)}


def test_our_own_reader_of_graphs_sees_it_so_as_well() -> None:
    reader = GraphReader()
    for path in ("pmagent/actors/audit/graph.py", "pmagent/actors/audit/nodes.py"):
        reader.take(parsed(path, Path(__file__).parents[2].joinpath(path).read_bytes()))
    (graph,) = reader.graphs()
    assert {"context_builder", "evidence_aggregator"} <= set(graph.parallel_sources)
    assert {"evidence_aggregator", "deliberation"} <= set(graph.fan_in_targets)
    drawn = {(source, target) for source, targets in ways().items() for target in targets}
    assert {(edge.source, edge.target) for edge in graph.edges} == drawn
    assert graph.compiled


@each("name", [*DETECTIVES, "evidence_aggregator", *BENCH, "chief_justice"])
def test_a_node_is_a_function_of_the_state(name: str) -> None:
    node = getattr(pmagent.audit, f"{name}_node")
    given = inspect.signature(node).parameters
    assert next(iter(given)) == "state"
    assert all(one.default is not one.empty for one in list(given.values())[1:])


@each("name, given", [
    ("clone_repo", ["repo_url"]),
    ("extract_git_history", ["repo_path"]),
    ("analyze_graph_structure", ["repo_path"]),
    ("ingest_pdf", ["pdf_path", ("chunk_by", "char")]),
    ("query_doc", ["store", "question"]),
    ("extract_images_from_pdf", ["pdf_path"]),
    ("analyze_diagram", ["image", "question"]),
    ("cross_reference", ["claimed_paths", "repo_evidence"]),
])
def test_a_tool_takes_what_the_specification_gives_it(name: str, given: Sequence[Any]) -> None:
    """Our own parameters come behind it, and may be left out."""
    parameters = list(inspect.signature(getattr(pmagent.audit, name)).parameters.values())
    taken = [one.name if one.default is one.empty else (one.name, one.default) for one in parameters[: len(given)]]
    assert taken == list(given)
    assert all(one.default is None for one in parameters[len(given) :])
