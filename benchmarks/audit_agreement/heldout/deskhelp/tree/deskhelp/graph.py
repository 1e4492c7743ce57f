from langgraph.graph import END, START, StateGraph

from . import nodes
from .state import Desk


def build(checkpointer=None):
    g = StateGraph(Desk)
    g.add_node("sort_out", nodes.sort_out)
    g.add_node("look_up", nodes.look_up)
    g.add_node("refund", nodes.refund)
    g.add_node("answer", nodes.answer)
    g.add_node("human", nodes.human)
    g.add_edge(START, "sort_out")
    g.add_conditional_edges("look_up", nodes.after_look_up, ["human", "refund", "answer"])
    for last in ("refund", "answer", "human"):
        g.add_edge(last, END)
    return g.compile(checkpointer=checkpointer)
