"""A conditional entry point with a map."""

from typing import TypedDict

from langgraph.graph import StateGraph


class State(TypedDict):
    kind: str


def route(state: State) -> str:
    return state["kind"]


def work(state: State) -> State:
    return state


flow = StateGraph(State)
flow.add_node("question", work)
flow.add_node("command", work)
flow.add_node("answer", work)
flow.set_conditional_entry_point(route, {"q": "question", "c": "command"})
flow.add_edge("question", "answer")
flow.add_edge("command", "answer")
flow.set_finish_point("answer")
graph = flow.compile()
