"""Nodes that go on by Command, as annotated."""

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    n: int


def supervisor(state: State) -> Command[Literal["coder", "writer", "__end__"]]:
    if state["n"] > 3:
        return Command(goto=END)
    return Command(goto="coder" if state["n"] else "writer", update={"n": state["n"] + 1})


def coder(state: State) -> Command[Literal["supervisor"]]:
    return Command(goto="supervisor")


def writer(state: State) -> Command[Literal["supervisor"]]:
    return Command(goto="supervisor")


builder = StateGraph(State)
builder.add_edge(START, "supervisor")
builder.add_node(supervisor)
builder.add_node(coder)
builder.add_node(writer)
graph = builder.compile()
