from langgraph.graph import END, START, StateGraph

from . import detect, judges, justice
from .state import State


def build():
    g = StateGraph(State)
    for node in (detect.read_log, detect.read_code, detect.join, judges.prosecutor, judges.defense, judges.tech_lead,
                 justice.chief_justice):
        g.add_node(node)
    g.add_edge(START, "read_log")
    g.add_edge(START, "read_code")
    g.add_edge(["read_log", "read_code"], "join")
    g.add_conditional_edges("join", lambda s: ["prosecutor", "defense", "tech_lead"] if s.get("clues") else END,
                            ["prosecutor", "defense", "tech_lead", END])
    g.add_edge(["prosecutor", "defense", "tech_lead"], "chief_justice")
    g.add_edge("chief_justice", END)
    return g.compile()
