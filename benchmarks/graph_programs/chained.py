"""Everything in one expression."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def one(state: State) -> State:
    return state


def two(state: State) -> State:
    return state


graph = (
    StateGraph(State)
    .add_node("first", one)
    .add_node("second", two)
    .add_edge(START, "first")
    .add_edge("first", "second")
    .add_edge("second", END)
    .compile()
)
