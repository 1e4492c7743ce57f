"""Destinations told to add_node, as a tuple and with labels."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    n: int


def triage(state: State):
    return Command(goto="urgent" if state["n"] else "normal")


def handle(state: State):
    return Command(goto=END)


builder = StateGraph(State)
builder.add_node("triage", triage, destinations=("urgent", "normal"))
builder.add_node("urgent", handle, destinations={END: "handled", "normal": "not urgent"})
builder.add_node("normal", handle, destinations=(END,))
builder.add_edge(START, "triage")
graph = builder.compile()
