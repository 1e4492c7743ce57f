"""What is known about a request."""

from __future__ import annotations

import operator
from datetime import date
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Area = Literal["termination", "rent increase", "defects", "deposit", "other"]


class Facts(BaseModel):
    """The facts of a letter, as far as they are in it."""

    tenant: str = Field(min_length=2)
    landlord: str = Field(min_length=2)
    area: Area
    served_on: date | None = Field(None, description="day on which the landlord's letter arrived")
    account: str = Field(description="what happened, at most 120 words", max_length=1200)


class Term(BaseModel):
    what: str
    ends: date
    rule: str


class Remark(BaseModel):
    source: Literal["conflicts", "terms", "precedents"]
    text: str
    blocks: bool = False


class Review(BaseModel):
    signed: bool
    change: str = ""


class Case(TypedDict, total=False):
    number: int
    mail: str
    letter: str
    facts: Facts
    remarks: Annotated[list[Remark], operator.add]
    terms: list[Term]
    draft: str
    rounds: int
    review: Review
    sent: Annotated[list[str], operator.add]
    refused: str


class Reading(TypedDict, total=False):
    """The state of the subgraph that reads a letter."""

    letter: str
    attempts: int
    complaint: str
    facts: Facts
    refused: str
