"""Names from enumerations, with and without value."""

from enum import Enum, StrEnum, auto
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class Node(str, Enum):
    INGEST = "ingest"
    INDEX = "index"


class Stage(StrEnum):
    SEARCH = auto()
    ANSWER = "answer"


class State(TypedDict):
    n: int


def step(state: State) -> State:
    return state


builder = StateGraph(State)
for member in Node:
    builder.add_node(member.value, step)
for stage in Stage:
    builder.add_node(stage, step)
builder.add_edge(START, Node.INGEST.value)
builder.add_edge(Node.INGEST.value, Node.INDEX.value)
builder.add_edge(Node.INDEX.value, Stage.SEARCH)
builder.add_edge(Stage.SEARCH, Stage.ANSWER)
builder.add_edge(Stage.ANSWER, END)
graph = builder.compile()
