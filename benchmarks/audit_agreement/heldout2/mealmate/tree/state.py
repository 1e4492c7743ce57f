from typing import Annotated, Any, TypedDict

from langgraph.graph.message import add_messages


class PlanState(TypedDict):
    wish: str
    fridge: list[str]
    messages: Annotated[list, add_messages]
    plan: dict[str, Any]      # day -> dish
    kcal: dict[str, Any]      # day -> kcal
    tries: int
    complaint: str
