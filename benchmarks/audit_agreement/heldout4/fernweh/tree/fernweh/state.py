from __future__ import annotations

import operator
from datetime import date, datetime
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field, model_validator


class Wish(BaseModel):
    """What a customer wants. Fields that the text leaves open stay empty; nothing is guessed."""

    origin: str | None = None
    destination: str | None = None
    day: date | None = None
    after_hour: int = Field(0, ge=0, le=23, description="earliest hour of departure")
    travellers: int = Field(1, ge=1, le=9)
    night_trains: bool = True
    budget: float | None = Field(None, gt=0, description="euros for everybody")

    def missing(self) -> list[str]:
        return [name for name in ("origin", "destination", "day") if getattr(self, name) is None]


class Connection(BaseModel):
    id: str
    departs: datetime
    arrives: datetime
    changes: int = Field(ge=0)
    price: float = Field(ge=0)
    night: bool = False

    @model_validator(mode="after")
    def forwards(self) -> Connection:
        if self.arrives <= self.departs:
            raise ValueError("arrives before it departs")
        return self


class Booking(BaseModel):
    reference: str
    connection: Connection
    travellers: int


class Journey(TypedDict, total=False):
    number: str
    texts: Annotated[list[str], operator.add]
    questions: int
    widened: int
    wish: Wish
    options: list[Connection]
    chosen: Connection
    booking: Booking
    problem: str
