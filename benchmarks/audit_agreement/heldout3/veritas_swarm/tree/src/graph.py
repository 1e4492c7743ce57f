"""The digital courtroom as a LangGraph StateGraph."""
from langgraph.graph import END, START, StateGraph

from src.agents.detectives import doc_analyst, evidence_aggregator, intake, repo_investigator, vision_inspector
from src.agents.judges import defense, prosecutor, tech_lead
from src.agents.justice import abort_case, chief_justice
from src.core.state import SwarmState


def route_after_intake(state: SwarmState):
    if not state["clone_ok"]:
        return "abort_case"
    return ["repo_investigator", "doc_analyst", "vision_inspector"]


def build_courtroom():
    graph = StateGraph(SwarmState)
    graph.add_node("intake", intake)
    graph.add_node("repo_investigator", repo_investigator)
    graph.add_node("doc_analyst", doc_analyst)
    graph.add_node("vision_inspector", vision_inspector)
    graph.add_node("evidence_aggregator", evidence_aggregator)
    graph.add_node("prosecutor", prosecutor)
    graph.add_node("defense", defense)
    graph.add_node("tech_lead", tech_lead)
    graph.add_node("chief_justice", chief_justice)
    graph.add_node("abort_case", abort_case)

    graph.add_edge(START, "intake")
    graph.add_conditional_edges(
        "intake", route_after_intake, ["repo_investigator", "doc_analyst", "vision_inspector", "abort_case"]
    )
    graph.add_edge(["repo_investigator", "doc_analyst", "vision_inspector"], "evidence_aggregator")
    for judge in ("prosecutor", "defense", "tech_lead"):
        graph.add_edge("evidence_aggregator", judge)
    graph.add_edge(["prosecutor", "defense", "tech_lead"], "chief_justice")
    graph.add_edge("chief_justice", END)
    graph.add_edge("abort_case", END)
    return graph.compile()
