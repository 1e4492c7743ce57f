"""Records. Amounts are in cents."""
from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field


class Kind(StrEnum):
    ADDRESS = "address"
    ABSENT = "absent"
    DAMAGED = "damaged"
    REFUSED = "refused"
    LOST = "lost"
    OTHER = "other"


class ParcelException(BaseModel):
    id: str
    parcel: str
    carrier_text: str = Field(max_length=4000)
    attempts: int = 0
    value: int = Field(ge=0, description="value of the goods in cents")
    email: str


class Reading(BaseModel):
    """The model's understanding of the carrier's text."""

    kind: Kind
    certain: bool = Field(description="false if the text could mean something else")
    summary: str = Field(max_length=300)


class Step(BaseModel):
    """What is going to be done, decided by rules."""

    action: Literal["ask_address", "retry", "refund", "replace", "hand_over"]
    reason: str
    needs_yes: bool


class Answer(BaseModel):
    yes: bool
    by: str
    note: str = ""


class Result(BaseModel):
    exception: str
    action: str
    done: bool
    told: str
