"""Names that LangGraph takes from what was added: callables of every kind."""

from functools import partial
from typing import Any, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


class Retriever:
    def __call__(self, state: State) -> State:
        return state


class Tools:
    def rerank(self, state: State) -> State:
        return state


def answer(state: State, tone: str) -> State:
    return state


async def log(state: State) -> dict[str, Any]:
    return {}


def store(state: State) -> dict[str, Any]:
    return {}


builder = StateGraph(State)
builder.add_node(Retriever())
builder.add_node(Tools().rerank)
builder.add_node("answer", partial(answer, tone="kind"))
builder.add_node(log)
builder.add_node(RunnableLambda(store))
builder.add_node(RunnableLambda(store, name="keep"))
builder.add_node(lambda state: {})
builder.add_edge(START, "Retriever")
builder.add_edge("Retriever", "rerank")
builder.add_edge("rerank", "answer")
builder.add_edge("answer", "log")
builder.add_edge("answer", "store")
builder.add_edge("store", "keep")
builder.add_edge("keep", "<lambda>")
builder.add_edge("log", END)
builder.add_edge("<lambda>", END)
graph = builder.compile()
