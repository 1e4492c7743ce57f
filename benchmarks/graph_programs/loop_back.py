"""Loops back, a node that goes to itself, and branches that end early."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    tries: int


def node(state: State) -> State:
    return {"tries": state["tries"] + 1}


def verdict(state: State) -> str:
    match state["tries"]:
        case 0:
            return "retry"
        case 1:
            return "rewrite"
        case _:
            return "accept"


builder = StateGraph(State)
builder.add_node("write", node)
builder.add_node("judge", node)
builder.add_edge(START, "write")
builder.add_edge("write", "judge")
builder.add_conditional_edges("judge", verdict, {"retry": "judge", "rewrite": "write", "accept": END})
graph = builder.compile()
