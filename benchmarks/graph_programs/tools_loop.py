"""The loop of an agent and its tools, with tools_condition and ToolNode."""

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def search(query: str) -> str:
    """Search."""
    return query


model = FakeListChatModel(responses=["hello"])


def chatbot(state: MessagesState) -> dict[str, list[object]]:
    return {"messages": [model.invoke(state["messages"])]}


graph_builder = StateGraph(MessagesState)
graph_builder.add_node("chatbot", chatbot)
graph_builder.add_node(ToolNode(tools=[search]))
graph_builder.add_conditional_edges("chatbot", tools_condition)
graph_builder.add_edge("tools", "chatbot")
graph_builder.add_edge(START, "chatbot")
graph = graph_builder.compile()
