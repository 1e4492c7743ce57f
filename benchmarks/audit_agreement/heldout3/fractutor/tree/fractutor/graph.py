from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph

from . import nodes
from .state import TutorState

MAX_HINTS = 4


def by_intent(state):
    return {"answer": "check", "question": "explain", "talk": "explain", "bye": "goodbye"}[state["intent"]]


def after_check(state):
    if not state["mistake"]:
        return "adapt"
    if state.get("hints_used", 0) >= MAX_HINTS:
        return "adapt"
    return "hint"


def build():
    g = StateGraph(TutorState)
    g.add_node("new_exercise", nodes.new_exercise)
    g.add_node("listen", nodes.listen)
    g.add_node("understand", nodes.understand)
    g.add_node("check", nodes.check)
    g.add_node("hint", nodes.hint)
    g.add_node("explain", nodes.explain)
    g.add_node("adapt", nodes.adapt)
    g.add_node("goodbye", nodes.goodbye)
    g.add_edge(START, "new_exercise")
    g.add_edge("new_exercise", "listen")
    g.add_edge("listen", "understand")
    g.add_conditional_edges("understand", by_intent, ["check", "explain", "goodbye"])
    g.add_conditional_edges("check", after_check, ["hint", "adapt"])
    g.add_edge("hint", "listen")
    g.add_edge("explain", "listen")
    g.add_edge("adapt", "new_exercise")
    g.add_edge("goodbye", END)
    return g.compile(checkpointer=MemorySaver())
