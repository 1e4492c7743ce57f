"""The records that travel through the warning graph."""

from __future__ import annotations

import operator
from datetime import datetime
from enum import IntEnum
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field, model_validator


class Level(IntEnum):
    NONE = 0
    YELLOW = 1
    ORANGE = 2
    RED = 3


class Gauge(BaseModel):
    """A station and its thresholds in centimetres."""

    station: str = Field(pattern=r"^[a-z0-9-]{2,40}$")
    name: str
    yellow: int
    orange: int
    red: int

    @model_validator(mode="after")
    def ordered(self) -> Gauge:
        if not self.yellow < self.orange < self.red:
            raise ValueError(f"{self.station}: thresholds are not in order")
        return self


class Reading(BaseModel):
    station: str
    name: str
    centimetres: float
    per_hour: float
    """Rise in centimetres per hour, over the last hour."""
    level: Level


class Failure(BaseModel):
    station: str
    cause: str


class Draft(BaseModel):
    """The text of a warning, for people who read it on a telephone."""

    headline: str = Field(max_length=60)
    body: str = Field(max_length=400)


class Watch(TypedDict, total=False):
    number: str
    gauges: list[Gauge]
    readings: Annotated[list[Reading], operator.add]
    failures: Annotated[list[Failure], operator.add]
    level: Level
    draft: Draft
    note: str
    """Why the officer said no, or why nothing was sent."""
    sent: int


class One(TypedDict):
    """A branch of the fan-out."""

    gauge: Gauge
    now: datetime
