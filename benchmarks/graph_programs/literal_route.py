"""A conditional edge whose targets are in the annotation of its function, END among them."""

from __future__ import annotations

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    tries: int


def attempt(state: State) -> State:
    return {"tries": state["tries"] + 1}


def check(state: State) -> State:
    return state


def again(state: State) -> Literal["attempt", "__end__"]:
    if state["tries"] < 3:
        return "attempt"
    return END


builder = StateGraph(State)
builder.add_node("attempt", attempt)
builder.add_node("check", check)
builder.add_edge(START, "attempt")
builder.add_edge("attempt", "check")
builder.add_conditional_edges("check", again)
graph = builder.compile()
