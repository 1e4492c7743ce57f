"""The hierarchical state graph."""
from langgraph.graph import END, START, StateGraph

from verity.detectives import doc_analyst, repo_investigator, vision_inspector
from verity.judges import defense, prosecutor, tech_lead
from verity.justice import chief_justice
from verity.state import BoardState


def evidence_aggregator(state: BoardState) -> dict:
    """Fan-in: synchronise all detectives."""
    return {}


def route_on_evidence(state: BoardState) -> str:
    return "ok" if state["evidences"] else "missing"


def error_handler(state: BoardState) -> dict:
    return {"final_report": "error"}


def bench(state: BoardState) -> dict:
    """Fan-out to the judges."""
    return {}


def build_board():
    g = StateGraph(BoardState)
    for name, node in (("repo", repo_investigator), ("doc", doc_analyst), ("vision", vision_inspector)):
        g.add_node(name, node)
        g.add_edge(START, name)
    g.add_node("aggregate", evidence_aggregator)
    g.add_edge(["repo", "doc", "vision"], "aggregate")
    g.add_node("error", error_handler)
    g.add_node("bench", bench)
    g.add_conditional_edges("aggregate", route_on_evidence, {"ok": "bench", "missing": "error"})
    g.add_edge("error", END)
    for name, node in (("prosecutor", prosecutor), ("defense", defense), ("tech_lead", tech_lead)):
        g.add_node(name, node)
        g.add_edge("bench", name)
    g.add_node("justice", chief_justice)
    g.add_edge(["prosecutor", "defense", "tech_lead"], "justice")
    g.add_edge("justice", END)
    return g.compile()
