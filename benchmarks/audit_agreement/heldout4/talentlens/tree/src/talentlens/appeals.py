"""Appeals: a rejected candidate can ask for a second, human look."""
from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class AppealState(TypedDict):
    address: str
    statement: str
    granted: bool


def second_look(state: AppealState) -> AppealState:
    answer = interrupt({"address": state["address"], "statement": state["statement"]})
    return {"granted": answer == "yes"}


def build_appeals():
    graph = StateGraph(AppealState)
    graph.add_node("second_look", second_look)
    graph.add_edge(START, "second_look")
    graph.add_edge("second_look", END)
    return graph.compile()
