"""Names from the fields of a dataclass and of a named tuple."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


class Step(NamedTuple):
    name: str
    after: str


@dataclass
class Config:
    first: str = "plan"
    steps: list[Step] = field(default_factory=list)


config = Config(steps=[Step("plan", "act"), Step("act", "report")])


def node(state: State) -> State:
    return state


builder = StateGraph(State)
for step in config.steps:
    builder.add_node(step.name, node)
builder.add_node("report", node)
builder.add_edge(START, config.first)
for step in config.steps:
    builder.add_edge(step.name, step.after)
builder.add_edge("report", END)
graph = builder.compile()
