"""Two conditional edges and a plain one from the same node."""

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> dict[str, int]:
    return {}


def by_size(state: State) -> Literal["small", "large"]:
    return "small" if state["n"] < 10 else "large"


def by_sign(state: State) -> Literal["positive", "negative"]:
    return "positive" if state["n"] > 0 else "negative"


g = StateGraph(State)
for name in ("look", "small", "large", "positive", "negative", "always"):
    g.add_node(name, node)
g.add_edge(START, "look")
g.add_conditional_edges("look", by_size)
g.add_conditional_edges("look", by_sign)
g.add_edge("look", "always")
graph = g.compile()
