from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field


def latest(old, new):
    """Keep the newest value."""
    return new if new is not None else old


class Entry(BaseModel):
    """One fact for the diary."""

    kind: Literal["work", "staff", "delivery", "weather", "defect", "visit", "accident"]
    text: str = Field(min_length=3)
    place: str | None = Field(None, description="part of the building")
    hours: float | None = Field(None, ge=0, le=24)
    urgent: bool = False


class Entries(BaseModel):
    entries: list[Entry]


class Source(BaseModel):
    path: Path
    kind: Literal["memo", "photo"]


class Diary(BaseModel):
    """State of the graph."""

    site: str
    day: date
    sources: list[Source] = []
    entries: Annotated[list[Entry], latest] = []
    failed: Annotated[list[str], latest] = []
    text: str = ""
    decision: str = ""
    mailed: bool = False
