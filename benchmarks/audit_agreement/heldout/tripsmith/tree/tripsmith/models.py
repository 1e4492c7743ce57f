from __future__ import annotations

import operator
from typing import Annotated, Optional

from pydantic import BaseModel, Field


class Wish(BaseModel):
    """A trip as the traveller wants it."""

    city: str
    nights: int = Field(ge=1, le=30)
    budget: float = Field(gt=0)


class Offer(BaseModel):
    kind: str
    id: str
    price: float
    note: str = ""


class TransportState(BaseModel):
    wish: Wish
    found: list[Offer] = []
    offers: Annotated[list[Offer], operator.add] = []


class LodgingState(BaseModel):
    wish: Wish
    offers: Annotated[list[Offer], operator.add] = []
    floor: float = 8.0


class Trip(BaseModel):
    request: str
    wish: Optional[Wish] = None
    offers: Annotated[list[Offer], operator.add] = []
    chosen: list[Offer] = []
    over: float = 0.0
    booked: bool = False
    message: str = ""
