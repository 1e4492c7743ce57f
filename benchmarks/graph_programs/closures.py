"""Functions in functions that add to a builder around them, and an import that is returned."""

from typing import Any, Callable, TypedDict


class State(TypedDict):
    n: int


def need():
    try:
        from langgraph.graph import END, START, StateGraph
    except ImportError as missing:
        raise RuntimeError("install langgraph") from missing
    return StateGraph, START, END


def build(skip: tuple[str, ...] = ()) -> Any:
    StateGraph, START, END = need()
    builder = StateGraph(State)
    before = START

    def guarded(name: str, function: Callable[[State], Any]) -> None:
        nonlocal before

        def wrapped(state: State) -> Any:
            return {} if name in skip else function(state)

        builder.add_node(name, wrapped)
        builder.add_edge(before, name)
        before = name

    guarded("load", lambda state: {})
    guarded("check", lambda state: {})
    guarded("save", lambda state: {})
    builder.add_conditional_edges(
        "save", lambda state: "again" if state["n"] else "done", {"again": "load", "done": END}
    )
    return builder.compile()


graph = build()
