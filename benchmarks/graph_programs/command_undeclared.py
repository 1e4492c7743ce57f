"""Commands without annotation: LangGraph draws nothing of them, the runs show where they go."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    n: int


def check(state: State):
    if state["n"] > 1:
        return Command(goto="report")
    target = "repair" if state["n"] == 1 else "explain"
    return Command(goto=target, update={"n": 2})


def repair(state: State):
    return Command(update={"n": 5}, goto=["check"])


def explain(state: State) -> dict[str, Any]:
    return {}


def report(state: State) -> Any:
    return Command(goto=END)


builder = StateGraph(State)
builder.add_node("check", check)
builder.add_node("repair", repair)
builder.add_node("explain", explain)
builder.add_node("report", report)
builder.add_edge(START, "check")
builder.add_edge("explain", END)
graph = builder.compile()
RUNS: list[dict[str, Any]] = [{"n": 0}, {"n": 1}, {"n": 2}]
