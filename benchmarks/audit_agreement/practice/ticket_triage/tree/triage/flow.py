from langgraph.graph import END, StateGraph

from . import steps
from .schema import Ticket

NODES = [steps.by_rules, steps.by_model, steps.assign, steps.to_desk]


def compile_flow():
    flow = StateGraph(Ticket)
    for step in NODES:
        flow.add_node(step)
    flow.set_entry_point("by_rules")
    flow.add_conditional_edges("by_rules", steps.needs_model)
    flow.add_conditional_edges("by_model", steps.model_done)
    flow.set_finish_point("assign")
    flow.add_edge("to_desk", END)
    return flow.compile()
