"""set_entry_point and set_finish_point."""

from typing import TypedDict

from langgraph.graph import StateGraph


class State(TypedDict):
    n: int


def work(state: State) -> State:
    return state


workflow = StateGraph(state_schema=State)
workflow.add_node(node="a", action=work)
workflow.add_node("b", work)
workflow.set_entry_point("a")
workflow.add_edge(start_key="a", end_key="b")
workflow.set_finish_point("b")
app = graph = workflow.compile()
