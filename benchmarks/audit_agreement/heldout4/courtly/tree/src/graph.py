from langgraph.graph import END, START, StateGraph

from src.nodes.detectives import doc_analyst, evidence_aggregator, repo_investigator
from src.nodes.judges import defense, prosecutor, tech_lead
from src.nodes.justice import chief_justice
from src.state import AgentState


def build_graph():
    builder = StateGraph(AgentState)

    # Detectives
    builder.add_node("repo_investigator", repo_investigator)
    builder.add_node("doc_analyst", doc_analyst)
    builder.add_node("evidence_aggregator", evidence_aggregator)
    # Judges
    builder.add_node("prosecutor", prosecutor)
    builder.add_node("defense", defense)
    builder.add_node("tech_lead", tech_lead)
    builder.add_node("chief_justice", chief_justice)

    # Fan-out
    builder.add_edge(START, "repo_investigator")
    builder.add_edge(START, "doc_analyst")
    # Fan-in
    builder.add_edge(["repo_investigator", "doc_analyst"], "evidence_aggregator")
    # Fan-out 2
    builder.add_edge("evidence_aggregator", "prosecutor")
    builder.add_edge("evidence_aggregator", "defense")
    builder.add_edge("evidence_aggregator", "tech_lead")
    # Fan-in 2
    builder.add_edge(["prosecutor", "defense", "tech_lead"], "chief_justice")
    builder.add_edge("chief_justice", END)
    return builder.compile()
