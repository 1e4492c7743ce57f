"""A route of another module that goes to one or several: nothing is drawn, the runs show it."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from .parts.names import WORKERS, attach, pick, worker


class State(TypedDict):
    n: int
    seen: Annotated[list[str], operator.add]


flow = StateGraph(State)
flow.add_node("plan", worker)
flow.add_node("end", worker)
flow.add_edge(START, "plan")
attach(flow, WORKERS, after=None, into="end")
flow.add_conditional_edges("plan", pick)
flow.add_edge("end", END)
graph = flow.compile()
RUNS: list[dict[str, Any]] = [{"n": 1}, {"n": 9}]
