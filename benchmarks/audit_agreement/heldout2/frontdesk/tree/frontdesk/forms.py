"""State and forms."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field


class Urgency(StrEnum):
    emergency = "emergency"
    today = "today"
    week = "week"
    routine = "routine"


class Complaint(BaseModel):
    """What the patient writes, in a form."""

    summary: str = Field(max_length=200)
    urgency: Urgency
    wants_appointment: bool
    certainty: float = Field(ge=0, le=1)


class Slot(BaseModel):
    id: int
    starts: datetime


def append_note(notes: list[str], new: list[str] | str) -> list[str]:
    return [*notes, *([new] if isinstance(new, str) else new)]


class Case(BaseModel):
    message: str
    patient: str
    flags: list[str] = []
    complaint: Complaint | None = None
    asked: int = 0
    slot: Slot | None = None
    booked: bool = False
    reply: str = ""
    notes: Annotated[list[str], append_note] = []
