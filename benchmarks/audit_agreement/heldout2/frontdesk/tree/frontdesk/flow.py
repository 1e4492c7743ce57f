from langgraph.graph import END, START, StateGraph

from . import nodes
from .forms import Case


def build(checkpointer):
    flow = StateGraph(Case)
    for step in (nodes.screen, nodes.understand, nodes.find_slot, nodes.confirm, nodes.answer, nodes.nurse):
        flow.add_node(step)
    flow.add_edge(START, "screen")
    flow.add_edge("confirm", END)
    flow.add_edge("answer", END)
    flow.add_edge("nurse", END)
    return flow.compile(checkpointer=checkpointer)
