"""A class derived from StateGraph that adds its own nodes."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


class Pipeline(StateGraph):
    def __init__(self, *names: str) -> None:
        super().__init__(State)
        self.names = names
        for name in names:
            self.add_node(name, node)

    def joined(self) -> Any:
        self.add_edge(START, self.names[0])
        for one, other in zip(self.names, self.names[1:]):
            self.add_edge(one, other)
        self.add_edge(self.names[-1], END)
        return self.compile()


graph = Pipeline("extract", "transform", "load").joined()
