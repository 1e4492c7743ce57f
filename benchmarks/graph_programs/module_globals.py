"""A builder that functions reach as a global, and a class that keeps it."""

from typing import Any, ClassVar, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


_builder: Any = None


def builder() -> Any:
    global _builder
    if _builder is None:
        _builder = StateGraph(State)
    return _builder


class Graphs:
    made: ClassVar[dict[str, Any]] = {}
    nodes = {"x": lambda state: {}, "y": lambda state: {}}

    @classmethod
    def make(cls, name: str) -> Any:
        for node, function in cls.nodes.items():
            builder().add_node(node, function)
        cls.made[name] = builder().add_edge(START, "x").add_edge("x", "y").add_edge("y", END).compile()
        return cls.made[name]


Graphs.make("main")
graph = Graphs.made["main"]
