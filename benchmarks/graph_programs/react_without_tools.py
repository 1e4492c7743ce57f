"""A prebuilt agent without tools, as a node of a graph."""

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent

writer = create_react_agent(FakeListChatModel(responses=["x"]), [], name="writer")


def check(state: MessagesState) -> dict[str, list[object]]:
    return {"messages": []}


builder = StateGraph(MessagesState)
builder.add_node("writer", writer)
builder.add_node("check", check)
builder.add_edge(START, "writer")
builder.add_edge("writer", "check")
builder.add_conditional_edges("check", lambda state: "ok", {"ok": END, "redo": "writer"})
graph = builder.compile()
