"""Three nodes one after the other, named by their functions."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    text: str


def read(state: State) -> State:
    return state


def think(state: State) -> State:
    return state


def write(state: State) -> State:
    return state


builder = StateGraph(State)
builder.add_node(read)
builder.add_node(think)
builder.add_node(write)
builder.add_edge(START, "read")
builder.add_edge("read", "think")
builder.add_edge("think", "write")
builder.add_edge("write", END)
graph = builder.compile()
