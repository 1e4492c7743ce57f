from langgraph.graph import END, START, StateGraph

from src.nodes.detectives import doc_analyst, evidence_aggregator, repo_investigator, vision_inspector
from src.nodes.judges import defense, prosecutor, tech_lead
from src.nodes.justice import chief_justice
from src.state import AgentState


def has_evidence(state: AgentState) -> str:
    return "ok"


def build_graph():
    builder = StateGraph(AgentState)
    builder.add_node("repo_investigator", repo_investigator)
    builder.add_node("doc_analyst", doc_analyst)
    builder.add_node("vision_inspector", vision_inspector)
    builder.add_node("evidence_aggregator", evidence_aggregator)
    builder.add_node("prosecutor", prosecutor)
    builder.add_node("defense", defense)
    builder.add_node("tech_lead", tech_lead)
    builder.add_node("chief_justice", chief_justice)
    for detective in ("repo_investigator", "doc_analyst", "vision_inspector"):
        builder.add_edge(START, detective)
        builder.add_edge(detective, "evidence_aggregator")
    builder.add_conditional_edges("evidence_aggregator", has_evidence, {"ok": "prosecutor", "evidence_missing": END})
    builder.add_edge("evidence_aggregator", "defense")
    builder.add_edge("evidence_aggregator", "tech_lead")
    for judge in ("prosecutor", "defense", "tech_lead"):
        builder.add_edge(judge, "chief_justice")
    builder.add_edge("chief_justice", END)
    return builder.compile()
