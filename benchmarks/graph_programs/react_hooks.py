"""A prebuilt agent with hooks and an answer that has a shape."""

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


def trim(state: dict[str, Any]) -> dict[str, Any]:
    return {}


SHAPE = {"title": "Answer", "type": "object", "properties": {}}
graph = create_react_agent(
    Model(responses=["x"]), [search], pre_model_hook=trim, post_model_hook=trim, response_format=SHAPE
)
