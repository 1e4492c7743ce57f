"""Nodes that enter a table by a decorator, edges beside them."""

from typing import Any, Callable, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


REGISTRY: dict[str, Callable[..., Any]] = {}
LINKS: list[tuple[str, str]] = []


def node(name: str, after: str = START):
    def register(function):
        REGISTRY[name] = function
        LINKS.append((after, name))
        return function

    return register


@node("fetch")
def fetch(state):
    return {}


@node("parse", after="fetch")
def parse(state):
    return {}


@node("store", after="parse")
@node("publish", after="parse")
def keep(state):
    return {}


builder = StateGraph(State)
for name, function in REGISTRY.items():
    builder.add_node(name, function)
for link in LINKS:
    builder.add_edge(*link)
for name in ("store", "publish"):
    builder.add_edge(name, END)
graph = builder.compile()
