"""Methods as nodes and routes of a class that is not the builder's."""

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


class Nodes:
    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def retrieve(self, state: State) -> State:
        return state

    def grade(self, state: State) -> State:
        return state

    def rewrite(self, state: State) -> State:
        return state

    def relevant(self, state: State) -> Literal["generate", "rewrite"]:
        return "generate" if state["n"] > self.threshold else "rewrite"


nodes = Nodes(3)
workflow = StateGraph(State)
workflow.add_node("retrieve", nodes.retrieve)
workflow.add_node("grade", nodes.grade)
workflow.add_node("rewrite", nodes.rewrite)
workflow.add_node("generate", lambda state: state)
workflow.add_edge(START, "retrieve")
workflow.add_edge("retrieve", "grade")
workflow.add_conditional_edges("grade", nodes.relevant)
workflow.add_edge("rewrite", "retrieve")
workflow.add_edge("generate", END)
graph = workflow.compile()
