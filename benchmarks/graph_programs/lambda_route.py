"""Lambdas as nodes and as routes, boolean keys in the map."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    ok: bool


builder = StateGraph(State)
builder.add_node("generate", lambda state: state)
builder.add_node("validate", lambda state: {"ok": True})
builder.add_edge(START, "generate")
builder.add_edge("generate", "validate")
builder.add_conditional_edges("validate", lambda state: state["ok"], {True: END, False: "generate"})
graph = builder.compile()
