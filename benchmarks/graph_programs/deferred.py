"""A deferred node, retry policies, and arguments that have no part in the shape."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy


class State(TypedDict):
    seen: Annotated[list[str], operator.add]


def node(state: State) -> dict[str, list[str]]:
    return {"seen": ["x"]}


builder = StateGraph(State)
builder.add_node("a", node, retry_policy=RetryPolicy(max_attempts=2))
builder.add_node("b", node, metadata={"kind": "worker"})
builder.add_node("b2", node)
builder.add_node("last", node, defer=True)
builder.add_edge(START, "a")
builder.add_edge(START, "b")
builder.add_edge("b", "b2")
builder.add_edge("a", "last")
builder.add_edge("b2", "last")
builder.add_edge("last", END)
graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["last"])
