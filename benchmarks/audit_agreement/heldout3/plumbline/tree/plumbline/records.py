"""What travels between the steps."""
from __future__ import annotations

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Seat = Literal["prosecutor", "defender", "engineer"]


class Criterion(BaseModel):
    id: str
    title: str
    ask: str
    weight: float = 1.0
    technical: bool = False


class Finding(BaseModel):
    """One observation with its place. `key` is unique within a run, so that opinions can cite it."""

    key: str
    found: bool
    what: str
    place: str
    flaw: bool = False


class Verdict(BaseModel):
    """The part of an opinion that the model fills in."""

    score: int = Field(ge=1, le=5)
    argument: str = Field(min_length=20)
    cites: list[str] = Field(description="keys of the findings on which the argument rests")


class Opinion(Verdict):
    seat: Seat
    criterion: str


class Mark(BaseModel):
    criterion: str
    score: int
    reasons: list[str]
    dissent: str = ""


def by_key(left: dict[str, Finding], right: dict[str, Finding]) -> dict[str, Finding]:
    """Two detectives may see the same thing; the one that found it wins over the one that did not."""
    merged = dict(left)
    for key, finding in right.items():
        if key not in merged or finding.found:
            merged[key] = finding
    return merged


class Case(TypedDict, total=False):
    url: str
    paper: str
    out: str
    folder: str
    criteria: list[Criterion]
    findings: Annotated[dict[str, Finding], by_key]
    opinions: Annotated[list[Opinion], operator.add]
    troubles: Annotated[list[str], operator.add]
    marks: list[Mark]
    exit_code: int


class Hearing(TypedDict):
    """What one judge is given for one criterion: never the other judges' words."""

    seat: Seat
    criterion: Criterion
    findings: dict[str, Finding]
