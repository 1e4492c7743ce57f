"""A prebuilt agent with tools."""

from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent


class Model(FakeListChatModel):
    def bind_tools(self, tools: Any, **rest: Any) -> Any:
        return self


@tool
def search(query: str) -> str:
    """Search."""
    return query


graph = create_react_agent(Model(responses=["x"]), tools=[search], name="searcher")
