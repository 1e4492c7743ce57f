"""Nodes made by a function, whose annotation unpacks a list."""

from typing import Any, Callable, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command


class State(TypedDict):
    next: str


def make_supervisor(members: list[str]) -> Callable[[State], Any]:
    options = ["FINISH", *members]

    def supervisor_node(state: State) -> Command[Literal[*members, "__end__"]]:
        goto = state["next"] if state["next"] in options else "FINISH"
        if goto == "FINISH":
            goto = END
        return Command(goto=goto, update={"next": goto})

    return supervisor_node


def worker(state: State) -> Command[Literal["supervisor"]]:
    return Command(goto="supervisor")


members = ["search", "scrape"]
builder = StateGraph(State)
builder.add_node("supervisor", make_supervisor(members))
for member in members:
    builder.add_node(member, worker)
builder.add_edge(START, "supervisor")
graph = builder.compile()
