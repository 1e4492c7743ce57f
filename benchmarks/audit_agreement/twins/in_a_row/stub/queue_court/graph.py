from langgraph.graph import END, START, StateGraph

from . import detect, judges, justice
from .state import State


def build():
    g = StateGraph(State)
    for node in (detect.read_log, detect.read_code, detect.join, judges.prosecutor, judges.defense, judges.tech_lead,
                 justice.chief_justice):
        g.add_node(node)
    g.add_edge(START, "read_log")
    g.add_edge("read_log", "read_code")
    g.add_edge("read_code", "join")
    for a, b in zip(("join", "prosecutor", "defense", "tech_lead"), ("prosecutor", "defense", "tech_lead", "chief_justice")):
        g.add_edge(a, b)
    g.add_edge("chief_justice", END)
    return g.compile()
