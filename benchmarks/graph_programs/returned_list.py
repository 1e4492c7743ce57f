"""A conditional edge that goes to several nodes at once."""

from typing import Sequence, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> dict[str, int]:
    return {}


def route(state: State) -> Sequence[str]:
    if state["n"]:
        return ["b", "c"]
    return ["c", "d"]


INTERMEDIATES = ["b", "c", "d"]
builder = StateGraph(State)
builder.add_node("a", node)
builder.add_edge(START, "a")
for name in INTERMEDIATES:
    builder.add_node(name, node)
    builder.add_edge(name, "e")
builder.add_node("e", node)
builder.add_conditional_edges("a", route, INTERMEDIATES)
builder.add_edge("e", END)
graph = builder.compile()
