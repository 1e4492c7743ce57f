"""Parts of the graph behind conditions, decided by constants and by parameters."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


DEBUG = False


def node(state: State) -> State:
    return state


def build(with_review: bool, rounds: int = 2) -> Any:
    builder = StateGraph(State)
    builder.add_node("draft", node)
    builder.add_edge(START, "draft")
    last = "draft"
    for number in range(rounds):
        name = f"revise_{number}"
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    if DEBUG:
        builder.add_node("dump", node)
        builder.add_edge(last, "dump")
    if with_review:
        builder.add_node("review", node)
        builder.add_edge(last, "review")
        last = "review"
    if not with_review:
        builder.add_node("publish_unseen", node)
        last = "publish_unseen"
    builder.add_edge(last, END)
    return builder.compile()


graph = build(with_review=True)
