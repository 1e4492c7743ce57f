"""Two fan-outs, each joined again, with a conditional edge between them."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START
from langgraph.graph import StateGraph as SG


class State(TypedDict):
    found: Annotated[list[str], operator.add]


DETECTIVES = {"repo": lambda state: {}, "doc": lambda state: {}, "picture": lambda state: {}}
JUDGES = ("prosecutor", "defense", "tech_lead")


def collect(state: State) -> dict[str, list[str]]:
    return {"found": []}


def enough(state: State) -> str:
    return "judge" if state["found"] else "missing"


graph_builder = SG(State)
for name, function in DETECTIVES.items():
    graph_builder.add_node(name, function)
    graph_builder.add_edge(START, name)
    graph_builder.add_edge(name, "aggregate")
graph_builder.add_node("aggregate", collect)
graph_builder.add_node("dispatch", collect)
graph_builder.add_node("give_up", collect)
graph_builder.add_conditional_edges("aggregate", enough, {"judge": "dispatch", "missing": "give_up"})
for judge in JUDGES:
    graph_builder.add_node(judge, collect)
    graph_builder.add_edge("dispatch", judge)
    graph_builder.add_edge(judge, "chief")
graph_builder.add_node("chief", collect)
graph_builder.add_edge("chief", END)
graph_builder.add_edge("give_up", END)
graph = graph_builder.compile(name="auditor")
