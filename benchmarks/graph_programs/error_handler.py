"""A node with a handler for its errors."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def fetch(state: State) -> State:
    return state


def failed(state: State) -> State:
    return state


builder = StateGraph(State)
builder.add_node("fetch", fetch, error_handler=failed)
builder.add_node("parse", fetch)
builder.add_edge(START, "fetch")
builder.add_edge("fetch", "parse")
builder.add_edge("parse", END)
graph = builder.compile()
