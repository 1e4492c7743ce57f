"""A list as the map of a conditional edge, with constants of the module as names."""

from typing import Final, TypedDict

from langgraph.graph import END, START, StateGraph

PLAN: Final = "plan"
ACT = "act"
REFLECT = f"re{'flect'}"
PREFIX = "final"


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


def route(state: State) -> str:
    return ACT if state["n"] else REFLECT


b = StateGraph(State)
b.add_node(PLAN, node)
b.add_node(ACT, node)
b.add_node(REFLECT, node)
b.add_node(PREFIX + "_" + ACT, node)
b.add_edge(START, PLAN)
b.add_conditional_edges(PLAN, route, [ACT, REFLECT, END])
b.add_edge(ACT, "%s_%s" % (PREFIX, ACT))
b.add_edge("final_act", END)
b.add_edge(REFLECT, PLAN)
graph = b.compile()
