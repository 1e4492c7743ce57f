"""Asynchronous nodes and routes, built by an asynchronous function."""

import asyncio
from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


async def call_model(state: State) -> State:
    return state


async def human(state: State) -> State:
    return state


async def route(state: State) -> Literal["human", "__end__"]:
    return "human" if state["n"] else END


async def make_graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("model", call_model)
    builder.add_node("human", human)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route)
    builder.add_edge("human", "model")
    return builder.compile()


graph = asyncio.run(make_graph())
