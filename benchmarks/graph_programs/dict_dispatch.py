"""Nodes in a dict of functions, edges by a dict of lists, and a map that is a comprehension."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def intake(state: State) -> State:
    return state


def billing(state: State) -> State:
    return state


def technical(state: State) -> State:
    return state


def close(state: State) -> State:
    return state


NODES = {function.__name__: function for function in (intake, billing, technical, close)}
AFTER = {START: ["intake"], "billing": ["close"], "technical": ["close"], "close": [END]}


def route(state: State) -> str:
    return "BILLING" if state["n"] else "TECHNICAL"


builder = StateGraph(State)
for name, function in NODES.items():
    builder.add_node(name, function)
for source, targets in AFTER.items():
    for target in targets:
        builder.add_edge(source, target)
builder.add_conditional_edges("intake", route, {kind.upper(): kind for kind in ("billing", "technical")})
graph = builder.compile()
