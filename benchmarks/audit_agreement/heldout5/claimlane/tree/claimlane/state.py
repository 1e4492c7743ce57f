from typing import Literal

from langgraph.graph import MessagesState
from pydantic import BaseModel, Field


class ClaimState(MessagesState):
    policy_number: str
    next: str
    amount: float
    letter: str
    approved: bool


class Route(BaseModel):
    """Who works next."""

    next: Literal["policy_agent", "damage_agent", "fraud_agent", "FINISH"]
    reason: str = Field(description="one sentence")


class FraudScore(BaseModel):
    score: int = Field(ge=0, le=100)
    indicators: list[str]
