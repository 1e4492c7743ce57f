"""Names from a Literal, as type and as values."""

from typing import Literal, TypedDict, get_args

from langgraph.graph import END, START, StateGraph

Expert = Literal["law", "tax", "health"]
Route = Literal["law", "tax", "health", "__end__"]


class State(TypedDict):
    kind: Expert


def triage(state: State) -> State:
    return state


def route(state: State) -> Route:
    return state["kind"]


builder = StateGraph(State)
builder.add_node(triage)
for expert in get_args(Expert):
    builder.add_node(expert, triage)
    builder.add_edge(expert, END)
builder.add_edge(START, triage.__name__)
builder.add_conditional_edges(triage.__name__, route)
graph = builder.compile()
