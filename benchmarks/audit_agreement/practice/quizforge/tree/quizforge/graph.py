from langgraph.graph import END, START, StateGraph

from . import workers  # noqa: F401  (registers the nodes)
from .items import Forge
from .registry import CHECKERS, NODES

MAX_ROUNDS = 4


def enough(s: Forge) -> str:
    return "done" if len(s["kept"]) >= s["wanted"] or s["rounds"] >= MAX_ROUNDS else "more"


def make():
    g = StateGraph(Forge)
    for name, fn in NODES.items():
        g.add_node(name, fn)
    g.add_edge(START, "write")
    for checker in CHECKERS:
        g.add_edge("write", checker)
    g.add_edge(CHECKERS, "edit")
    g.add_conditional_edges("edit", enough, {"done": END, "more": "write"})
    return g.compile()
