"""Names that the environment may change: the default is not taken for granted."""

import os
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> dict[str, int]:
    return {}


last = os.environ.get("LAST_NODE_OF_THIS_EXAMPLE", "finish")
builder = StateGraph(State)
builder.add_node("begin", node)
builder.add_node(last, node)
builder.add_edge(START, "begin")
builder.add_edge("begin", last)
graph = builder.compile()
