import sys

from langgraph.graph import END, START, StateGraph

from . import chief, detectives, judges
from .state import AuditState


def after_intake(state: AuditState):
    return "failed" if state.get("failures") else ["repo_investigator", "doc_analyst"]


def build():
    b = StateGraph(AuditState)
    b.add_node("intake", detectives.intake)
    b.add_node("repo_investigator", detectives.repo_investigator)
    b.add_node("doc_analyst", detectives.doc_analyst)
    b.add_node("vision_inspector", detectives.vision_inspector)
    b.add_node("aggregate", detectives.aggregate)
    b.add_node("prosecutor", judges.prosecutor)
    b.add_node("defense", judges.defense)
    b.add_node("tech_lead", judges.tech_lead)
    b.add_node("chief_justice", chief.chief_justice)
    b.add_node("report", chief.report)

    b.add_edge(START, "intake")
    b.add_conditional_edges("intake", after_intake,
                            {"failed": "report", "repo_investigator": "repo_investigator", "doc_analyst": "doc_analyst"})
    b.add_edge("repo_investigator", "aggregate")
    b.add_edge("doc_analyst", "aggregate")
    b.add_edge("vision_inspector", "aggregate")
    for j in ("prosecutor", "defense", "tech_lead"):
        b.add_edge("aggregate", j)
        b.add_edge(j, "chief_justice")
    b.add_edge("chief_justice", "report")
    b.add_edge("report", END)
    return b.compile()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: autoaudit REPO PDF")
    build().invoke({"repo_url": sys.argv[1], "pdf_path": sys.argv[2]})
    print("results/audit.md")
