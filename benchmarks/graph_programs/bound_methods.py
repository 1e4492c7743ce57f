"""Methods of the builder under other names, and keyword dictionaries."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


def node(state: State) -> State:
    return state


builder: StateGraph = StateGraph(State)
add, link = builder.add_node, builder.add_edge
for name in sorted({"beta", "alpha"}):
    add(name, node)
options: dict[str, Any] = {"node": "gamma", "action": node}
builder.add_node(**options)
link(START, "alpha")
link("alpha", "beta")
link(*("beta", "gamma"))
link("gamma", END)
graph = builder.compile()
