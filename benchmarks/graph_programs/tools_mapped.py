"""tools_condition with a map, and a ToolNode under a name of its own."""

from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def retrieve(query: str) -> str:
    """Retrieve."""
    return query


def agent(state: MessagesState) -> dict[str, list[object]]:
    return {"messages": []}


def generate(state: MessagesState) -> dict[str, list[object]]:
    return {"messages": []}


workflow = StateGraph(MessagesState)
workflow.add_node("agent", agent)
workflow.add_node("retrieve", ToolNode([retrieve]))
workflow.add_node("generate", generate)
workflow.add_edge(START, "agent")
workflow.add_conditional_edges("agent", tools_condition, {"tools": "retrieve", END: END})
workflow.add_edge("retrieve", "generate")
workflow.add_edge("generate", END)
graph = workflow.compile()
