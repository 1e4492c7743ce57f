from typing import Annotated, Literal

from langgraph.graph import MessagesState
from pydantic import BaseModel, Field


def keep_last(old, new):
    return new if new is not None else old


class Intent(BaseModel):
    """What the customer wants."""

    kind: Literal["question", "order", "refund", "angry"]
    order_number: int | None = Field(default=None, ge=1)


class Desk(MessagesState):
    intent: Annotated[Intent | None, keep_last]
    order_text: str
    rounds: int
