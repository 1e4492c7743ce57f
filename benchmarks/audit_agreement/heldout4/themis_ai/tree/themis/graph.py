"""Topology of the tribunal."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph

from .bench.judges import defender, prosecutor, tech_lead
from .core.state import TribunalState
from .court.chief import chief_justice, publish
from .forensics.probes import code_probe, docs_probe, git_probe


def intake(state: TribunalState) -> TribunalState:
    """Validate and sandbox the repository."""
    return {"checkout": state["repository"]}


def after_intake(state: TribunalState) -> Literal["proceed", "abort"]:
    return "proceed" if state.get("checkout") else "abort"


def dispatch(state: TribunalState) -> TribunalState:
    return {}


def docket(state: TribunalState) -> TribunalState:
    """Fan-in of the probes."""
    return {}


def abort(state: TribunalState) -> TribunalState:
    return {"failures": ["intake failed"], "document": "# Aborted"}


def build_tribunal() -> Any:
    graph = StateGraph(TribunalState)
    for name, node in {
        "intake": intake, "dispatch": dispatch, "git_probe": git_probe, "code_probe": code_probe,
        "docs_probe": docs_probe, "docket": docket, "prosecutor": prosecutor, "defender": defender,
        "tech_lead": tech_lead, "chief_justice": chief_justice, "publish": publish, "abort": abort,
    }.items():
        graph.add_node(name, node)
    graph.add_edge(START, "intake")
    graph.add_conditional_edges("intake", after_intake, {"proceed": "dispatch", "abort": "abort"})
    for probe in ("git_probe", "code_probe", "docs_probe"):
        graph.add_edge("dispatch", probe)
    graph.add_edge(["git_probe", "code_probe", "docs_probe"], "docket")
    for judge in ("prosecutor", "defender", "tech_lead"):
        graph.add_edge("docket", judge)
    graph.add_edge(["prosecutor", "defender", "tech_lead"], "chief_justice")
    graph.add_edge("chief_justice", "publish")
    graph.add_edge("publish", END)
    graph.add_edge("abort", END)
    return graph.compile()
