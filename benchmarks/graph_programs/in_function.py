"""A builder made in a function, and handed to helpers."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


def add_workers(builder: Any, names: list[str], after: str) -> None:
    for name in names:
        builder.add_node(name, node)
        builder.add_edge(after, name)


def finish(builder: Any, *names: str, end: str = "merge") -> Any:
    builder.add_node(end, node)
    builder.add_edge(list(names), end)
    builder.add_edge(end, END)
    return builder


def build(count: int) -> Any:
    builder = StateGraph(State)
    builder.add_node("split", node)
    builder.add_edge(START, "split")
    names = [f"worker_{number}" for number in range(1, count + 1)]
    add_workers(builder, names, after="split")
    return finish(builder, *names).compile()


def main() -> Any:
    return build(3)


graph = main()
