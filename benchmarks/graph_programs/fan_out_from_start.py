"""Parallel branches from START, joined by an edge with several sources."""

import operator
from typing import Annotated, TypedDict

import langgraph.graph as lg


class State(TypedDict):
    found: Annotated[list[str], operator.add]


def look(state: State) -> State:
    return {"found": ["x"]}


builder = lg.StateGraph(State)
for name in ["web", "files", "mail"]:
    builder.add_node(name, look)
    builder.add_edge(lg.START, name)
builder.add_node("gather", look)
builder.add_edge(["web", "files", "mail"], "gather")
builder.add_edge("gather", lg.END)
graph = builder.compile()
