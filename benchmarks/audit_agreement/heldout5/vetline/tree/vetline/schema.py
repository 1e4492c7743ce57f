from enum import Enum
from typing import Annotated, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field


class Urgency(str, Enum):
    EMERGENCY = "emergency"
    TODAY = "today"
    THIS_WEEK = "this_week"
    ADVICE = "advice"


class Triage(BaseModel):
    urgency: Urgency
    species: str = Field(description="dog, cat, rabbit, ...")
    red_flags: list[str] = Field(default_factory=list)
    question: str | None = Field(None, description="what has to be asked before deciding")


class CallState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    triage_level: str
    species: str
    question_count: int
    slot: str
    confirmed: bool
    outcome: str
