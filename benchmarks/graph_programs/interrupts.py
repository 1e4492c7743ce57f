"""A person in the loop: interrupt, private state, schemas for input and output."""

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class Overall(TypedDict):
    question: str
    answer: str


class Given(TypedDict):
    question: str


class Answered(TypedDict):
    answer: str


class Private(TypedDict):
    draft: str


def draft(state: Given) -> Private:
    return {"draft": state["question"]}


def review(state: Private) -> Command[Literal["send", "draft"]]:
    return Command(goto="send" if interrupt(state["draft"]) else "draft")


def send(state: Private) -> Answered:
    return {"answer": state["draft"]}


builder = StateGraph(Overall, input_schema=Given, output_schema=Answered)
for step in draft, review, send:
    builder.add_node(step)
builder.add_edge(START, "draft")
builder.add_edge("draft", "review")
builder.add_edge("send", END)
graph = builder.compile(interrupt_after=["draft"])
