"""Send without any declaration: nothing is drawn, the runs show it."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    parts: list[str]
    done: Annotated[list[str], operator.add]


def plan(state: State) -> dict[str, Any]:
    return {"parts": state["parts"] or ["one"]}


def section(state: dict[str, Any]) -> dict[str, Any]:
    return {"done": ["x"]}


def assemble(state: State) -> dict[str, Any]:
    return {}


def assign(state: State):
    sends = []
    for part in state["parts"]:
        sends.append(Send("section", {"part": part}))
    return sends


flow = StateGraph(State)
flow.add_node("plan", plan)
flow.add_node("section", section)
flow.add_node("assemble", assemble)
flow.add_edge(START, "plan")
flow.add_conditional_edges("plan", assign)
flow.add_edge("section", "assemble")
flow.add_edge("assemble", END)
graph = flow.compile()
RUNS: list[dict[str, Any]] = [{"parts": ["a", "b"], "done": []}]
