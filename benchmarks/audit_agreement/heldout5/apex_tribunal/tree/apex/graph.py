from langgraph.graph import END, START, StateGraph

from .bench import defense, prosecutor, tech_lead
from .detectives import doc_detective, repo_detective, vision_detective
from .state import TribunalState
from .supreme import supreme_court


def aggregate(state: TribunalState) -> dict:
    """Fan-in barrier."""
    return {}


def recover(state: TribunalState) -> dict:
    return {"final_report": "# Audit could not be completed\n"}


def evidence_gate(state: TribunalState):
    if not state.get("evidences"):
        return "recover"
    return ["prosecutor", "defense", "tech_lead"]


def build():
    g = StateGraph(TribunalState)
    g.add_node("repo_detective", repo_detective)
    g.add_node("doc_detective", doc_detective)
    g.add_node("vision_detective", vision_detective)
    g.add_node("aggregate", aggregate)
    g.add_node("prosecutor", prosecutor)
    g.add_node("defense", defense)
    g.add_node("tech_lead", tech_lead)
    g.add_node("supreme_court", supreme_court)
    g.add_node("recover", recover)
    for d in ("repo_detective", "doc_detective", "vision_detective"):
        g.add_edge(START, d)
    g.add_edge(["repo_detective", "doc_detective", "vision_detective"], "aggregate")
    g.add_conditional_edges("aggregate", evidence_gate, ["prosecutor", "defense", "tech_lead", "recover"])
    g.add_edge(["prosecutor", "defense", "tech_lead"], "supreme_court")
    g.add_edge("supreme_court", END)
    g.add_edge("recover", END)
    return g.compile()
