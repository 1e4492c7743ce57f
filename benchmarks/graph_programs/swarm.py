"""Agents that hand over to each other by tools' commands, with destinations told."""

from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command


class Model(FakeListChatModel):
    def bind_tools(self, tools: Any, **rest: Any) -> Any:
        return self


def handoff(agent_name: str) -> Any:
    @tool(f"transfer_to_{agent_name}")
    def transfer() -> Command[Any]:
        """Hand over."""
        return Command(goto=agent_name, graph=Command.PARENT)

    return transfer


model = Model(responses=["x"])
flights = create_react_agent(model, [handoff("hotels")], name="flights")
hotels = create_react_agent(model, [handoff("flights")], name="hotels")
graph = (
    StateGraph(MessagesState)
    .add_node(flights, destinations=("hotels",))
    .add_node(hotels, destinations=("flights",))
    .add_edge(START, "flights")
    .compile(name="travel")
)
