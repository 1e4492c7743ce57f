import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Urgency = Literal["emergency", "today", "routine", "admin"]


class Assessment(BaseModel):
    urgency: Urgency
    topic: Literal["prescription", "appointment", "results", "symptom", "other"]
    why: str = Field(max_length=200)


class Draft(BaseModel):
    reply: str = Field(min_length=20, max_length=1200)


class Review(BaseModel):
    """A second model looks at the draft."""

    gives_medical_advice: bool
    answers_the_question: bool
    remark: str = ""


class Triage(TypedDict, total=False):
    message: str
    patient: str
    text: str
    assessment: Assessment
    flags: list[str]
    facts: Annotated[list[str], operator.add]
    reply: str
    notes: Annotated[list[str], operator.add]
    outcome: Literal["sent", "discarded", "nurse"]


class Writing(TypedDict, total=False):
    """State of the subgraph that writes. It shares text, facts, reply and notes with Triage."""

    text: str
    facts: Annotated[list[str], operator.add]
    reply: str
    notes: Annotated[list[str], operator.add]
    remark: str
    round: int
