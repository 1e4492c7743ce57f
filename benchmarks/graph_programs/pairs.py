"""Nodes and edges from tables, and starred arguments."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def fetch(state: State) -> State:
    return state


def parse(state: State) -> State:
    return state


NODES = [("fetch", fetch), ("parse", parse)]
EDGES = [(START, "fetch"), ("fetch", "parse")]
EDGES += [("parse", END)]

builder = StateGraph(State)
for pair in NODES:
    builder.add_node(*pair)
for source, target in EDGES:
    builder.add_edge(source, target)
graph = builder.compile()
