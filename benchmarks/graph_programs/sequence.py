"""add_sequence, with names and without."""

from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict):
    n: int


def load(state: State) -> State:
    return state


def clean(state: State) -> State:
    return state


graph = (
    StateGraph(State)
    .add_sequence([load, ("tidy", clean), ("store", lambda state: state)])
    .add_edge(START, "load")
    .compile()
)
