"""A node that commands packets to several, and one that is told in its annotation."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send


class State(TypedDict):
    topics: list[str]
    notes: Annotated[list[str], operator.add]


def plan(state: State) -> Command[Literal["research"]]:
    return Command(goto=[Send("research", {"topic": topic}) for topic in state["topics"]])


def research(state: dict[str, Any]) -> dict[str, Any]:
    return {"notes": [state["topic"]]}


def write(state: State) -> Command[Literal["plan", "__end__"]]:
    return Command(goto=END if state["notes"] else "plan")


builder = StateGraph(State).add_node(plan).add_node(research).add_node(write)
builder.add_edge(START, "plan").add_edge("research", "write")
graph = builder.compile()
