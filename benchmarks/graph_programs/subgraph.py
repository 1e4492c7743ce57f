"""Compiled graphs as nodes, one with and one without a name of its own."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


def research():
    inner = StateGraph(State)
    inner.add_node("search", node)
    inner.add_node("read", node)
    inner.add_edge(START, "search")
    inner.add_edge("search", "read")
    inner.add_edge("read", END)
    return inner.compile(name="research")


writing = StateGraph(State)
writing.add_node("draft", node)
writing.add_edge(START, "draft")
writing_graph = writing.compile()

outer = StateGraph(State)
outer.add_node(research())
outer.add_node("writing", writing_graph)
outer.add_edge(START, "research")
outer.add_edge("research", "writing")
outer.add_edge("writing", END)
graph = outer.compile()
