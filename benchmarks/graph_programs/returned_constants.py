"""A conditional edge whose function is not annotated: nothing is drawn, the runs show it."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def start(state: State) -> dict[str, Any]:
    return {"n": state["n"]}


def odd(state: State) -> dict[str, Any]:
    return {}


def even(state: State) -> dict[str, Any]:
    return {}


def choose(state):
    if state["n"] < 0:
        return END
    parity = {0: "even", 1: "odd"}
    return parity[state["n"] % 2]


builder = StateGraph(State)
builder.add_node("start", start)
builder.add_node("odd", odd)
builder.add_node("even", even)
builder.add_edge(START, "start")
builder.add_conditional_edges("start", choose)
builder.add_edge("odd", END)
builder.add_edge("even", END)
graph = builder.compile()
RUNS: list[dict[str, Any]] = [{"n": -1}, {"n": 1}, {"n": 2}]
