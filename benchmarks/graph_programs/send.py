"""A mapped fan-out with Send, declared by a list, and its join."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]


def topics(state: State) -> dict[str, Any]:
    return {"subjects": ["lions", "bears"]}


def joke(state: dict[str, Any]) -> dict[str, Any]:
    return {"jokes": [state["subject"]]}


def best(state: State) -> dict[str, Any]:
    return {}


def each(state: State):
    return [Send("joke", {"subject": subject}) for subject in state["subjects"]]


builder = StateGraph(State)
builder.add_node(topics)
builder.add_node(joke)
builder.add_node(best)
builder.add_edge(START, "topics")
builder.add_conditional_edges("topics", each, ["joke"])
builder.add_edge("joke", "best")
builder.add_edge("best", END)
graph = builder.compile()
