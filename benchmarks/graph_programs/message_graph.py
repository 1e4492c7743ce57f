"""A graph whose state is a list of messages."""

import warnings
from typing import Any

from langgraph.graph import END, MessageGraph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    builder = MessageGraph()


def generate(messages: list[Any]) -> list[Any]:
    return []


def reflect(messages: list[Any]) -> list[Any]:
    return []


def should_continue(messages: list[Any]) -> str:
    return END if len(messages) > 6 else "reflect"


builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.set_entry_point("generate")
builder.add_conditional_edges("generate", should_continue, {"reflect": "reflect", END: END})
builder.add_edge("reflect", "generate")
graph = builder.compile()
