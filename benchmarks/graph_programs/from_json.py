"""A graph that is data: what the program parses when it runs is not read."""

import json
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

FLOW = json.loads('{"entry": "ask", "links": [["ask", "answer"]]}')


class State(TypedDict):
    n: int


def node(state: State) -> dict[str, int]:
    return {}


builder = StateGraph(State)
for name in sorted({name for link in FLOW["links"] for name in link}):
    builder.add_node(name, node)
builder.add_node("log", node)
builder.add_edge(START, FLOW["entry"])
for one, other in FLOW["links"]:
    builder.add_edge(one, other)
builder.add_edge("answer", "log")
builder.add_edge("log", END)
graph = builder.compile()
