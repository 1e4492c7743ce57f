from __future__ import annotations

import operator
from decimal import Decimal
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field

CODE = r"^\d{10}$"


class Position(BaseModel):
    number: int = Field(ge=1)
    text: str = Field(min_length=3, max_length=500)
    origin: str = Field(pattern=r"^[A-Z]{2}$")
    value: Decimal = Field(gt=0)
    kilograms: Decimal = Field(gt=0)


class Invoice(BaseModel):
    number: str = Field(pattern=r"^[0-9]{3,12}$")
    seller: str
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    positions: list[Position] = Field(min_length=1, max_length=200)


class Candidate(BaseModel):
    code: str = Field(pattern=CODE)
    text: str
    duty: Decimal
    """Per cent of the value."""


class Choice(BaseModel):
    """The model's choice for one position."""

    code: str = Field(pattern=CODE)
    reason: str = Field(max_length=300)
    sure: bool


class Line(BaseModel):
    """A position with its tariff number, as it would be declared."""

    position: Position
    code: str
    duty: Decimal
    reason: str
    sure: bool


class Desk(TypedDict, total=False):
    invoice: Invoice
    lines: Annotated[list[Line], operator.add]
    corrections: dict[int, str]
    rounds: int
    reference: str
    problem: str


class Branch(TypedDict):
    position: Position
