"""Records and the state of a cleaning."""
from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import BaseModel, Field


class Column(BaseModel):
    name: str
    type: Literal["text", "number", "date"]
    required: bool = False
    unique: bool = False
    minimum: float | None = None
    maximum: float | None = None


class Change(BaseModel):
    """One step of cleaning, for one column."""

    column: str
    why: str = Field(max_length=200)
    code: str = Field(max_length=500, description="a Python expression that gives the new column; df and pd are known")


class Proposal(BaseModel):
    changes: list[Change] = Field(max_length=30)


class Fault(BaseModel):
    column: str
    rule: str
    rows: int
    examples: list[str] = Field(default_factory=list)


class Cleaning(BaseModel):
    """State of the graph."""

    source: str
    target: str
    columns: list[Column]
    profile: str = ""
    proposal: Proposal | None = None
    faults: list[Fault] = Field(default_factory=list)
    log: Annotated[list[str], operator.add] = Field(default_factory=list)
    tries: int = 0
    trial: str = ""
    outcome: Literal["", "written", "refused", "not clean", "unreadable"] = ""
