import argparse

from langgraph.graph import END, START, StateGraph

from .detectives import DocAnalyst, RepoInvestigator, aggregator
from .judges import Defense, Prosecutor, TechLead
from .justice import ChiefJustice, write_report
from .state import AgentState

BENCH = (Prosecutor, Defense, TechLead)


def route(state: AgentState):
    if not state.get("evidences"):
        return "write_report"
    return [judge.name for judge in BENCH]


def build_swarm():
    graph = StateGraph(AgentState)
    graph.add_node("repo", RepoInvestigator())
    graph.add_node("doc", DocAnalyst())
    graph.add_node("aggregator", aggregator)
    graph.add_node("chief_justice", ChiefJustice())
    graph.add_node("write_report", write_report)
    for judge in BENCH:
        graph.add_node(judge.name, judge())
        graph.add_edge(judge.name, "chief_justice")
    for detective in ("repo", "doc"):
        graph.add_edge(START, detective)
        graph.add_edge(detective, "aggregator")
    graph.add_conditional_edges("aggregator", route, ["write_report", *(j.name for j in BENCH)])
    graph.add_edge("chief_justice", "write_report")
    graph.add_edge("write_report", END)
    return graph.compile()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--repo", required=True)
    p.add_argument("--pdf", default="")
    a = p.parse_args()
    print(build_swarm().invoke({"repo_url": a.repo, "pdf_path": a.pdf})["report_path"])


if __name__ == "__main__":
    main()
