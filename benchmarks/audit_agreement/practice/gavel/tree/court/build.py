from langgraph.graph import StateGraph, START, END

from . import bench, clues, gavel_rules
from .records import Docket


def court():
    b = StateGraph(Docket)
    b.add_node("fetch", clues.fetch, destinations=("fetch", "mistrial", "dig_history", "dig_code"))
    b.add_node("dig_history", clues.dig_history)
    b.add_node("dig_code", clues.dig_code)
    b.add_node("join", lambda d: {})
    for v in bench.voices:
        b.add_node(v, bench.seat(v))
        b.add_edge("join", v)
    b.add_node("chief", gavel_rules.chief, destinations=("attack", "protect", "weigh", "__end__"))
    b.add_node("mistrial", gavel_rules.mistrial)
    b.add_edge(START, "fetch")
    b.add_edge(["dig_history", "dig_code"], "join")
    b.add_edge(list(bench.voices), "chief")
    b.add_edge("mistrial", END)
    return b.compile()
