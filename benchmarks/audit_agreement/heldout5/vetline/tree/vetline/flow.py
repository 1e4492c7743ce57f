from langgraph.graph import END, START, StateGraph

from .nodes import advise, after_confirm, ask_back, book, confirm, emergency, find_slot, route
from .schema import CallState
from .triage import triage


def build_flow():
    flow = StateGraph(CallState)
    flow.add_node("triage", triage)
    flow.add_node("ask_back", ask_back)
    flow.add_node("emergency", emergency)
    flow.add_node("find_slot", find_slot)
    flow.add_node("confirm", confirm)
    flow.add_node("book", book)
    flow.add_node("advise", advise)
    flow.add_edge(START, "triage")
    flow.add_conditional_edges("triage", route, ["emergency", "ask_back", "find_slot", "advise"])
    flow.add_edge("ask_back", "triage")
    flow.add_edge("find_slot", "confirm")
    flow.add_conditional_edges("confirm", after_confirm, ["book", "find_slot"])
    flow.add_edge("emergency", END)
    flow.add_edge("book", END)
    flow.add_edge("advise", END)
    return flow.compile()
