"""Teams of teams: a function makes each, a graph of graphs joins them."""

from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    n: int


def worker(state: State) -> Command[Literal["lead"]]:
    return Command(goto="lead")


def team(*members: str) -> Any:
    def lead(state: State) -> Command[Literal[members + ("__end__",)]]:
        return Command(goto=members[0])

    builder = StateGraph(State)
    builder.add_node("lead", lead)
    for member in members:
        builder.add_node(member, worker)
    builder.add_edge(START, "lead")
    return builder.compile()


teams = {"research": team("search", "read"), "writing": team("draft", "edit", "chart")}
top = StateGraph(State)
top.add_node("boss", lambda state: state)
for name, each in teams.items():
    top.add_node(name, each)
    top.add_edge(name, "boss")
top.add_edge(START, "boss")
top.add_conditional_edges("boss", lambda state: "FINISH", {**{name: name for name in teams}, "FINISH": END})
graph = top.compile()
