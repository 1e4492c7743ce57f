"""Edges over zip, pairwise, enumerate and a comprehension."""

from itertools import pairwise
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


steps = ["s0", "s1", "s2", "s3"]
extra = [f"check_{index}_{name}" for index, name in enumerate(steps) if index % 2 == 0]
builder = StateGraph(State)
[builder.add_node(step, node) for step in steps]
for name in extra:
    builder.add_node(name, node)
for left, right in pairwise(steps):
    builder.add_edge(left, right)
for step, check in zip(steps[::2], extra):
    builder.add_edge(step, check)
for index, step in enumerate(steps):
    if index == 0:
        builder.add_edge(START, step)
    elif index == len(steps) - 1:
        builder.add_edge(step, END)
graph = builder.compile()
