from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

Role = Literal["prosecutor", "defence", "engineer"]


class Criterion(BaseModel):
    id: str
    name: str
    weight: float = Field(1.0, gt=0)
    look: str


class Finding(BaseModel):
    """Something an investigator saw. ``place`` is a file with a line, a commit, or a page."""

    id: str
    source: Literal["history", "code", "report"]
    criterion: str
    statement: str
    place: str
    holds: bool
    flaw: bool = False
    """A security flaw: caps the score of its criterion."""


class Vote(BaseModel):
    """A judge's answer on one criterion."""

    score: int = Field(ge=1, le=5)
    reason: str = Field(min_length=20)
    cites: list[str] = Field(description="ids of the findings that the reason rests on")


class Opinion(BaseModel):
    role: Role
    criterion: str
    vote: Vote


class Ruling(BaseModel):
    criterion: Criterion
    score: int
    votes: dict[str, int]
    notes: list[str]


class Case(BaseModel):
    """All that a verdict is made from."""

    address: str
    findings: list[Finding]
    silent: list[str]
    """Investigators that failed, with the cause."""
    opinions: list[Opinion]
    rulings: list[Ruling]
