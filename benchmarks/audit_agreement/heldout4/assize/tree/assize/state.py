"""What the court keeps on a case."""

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Judge = Literal["prosecutor", "defender", "engineer"]


class Criterion(BaseModel):
    id: str
    title: str
    asks: str
    weight: int = 1


class Exhibit(BaseModel):
    """Something a sleuth saw. `flaw` marks a security flaw that was confirmed by reading the code."""

    number: str
    criterion: str
    says: str
    place: str
    flaw: bool = False


class Finding(BaseModel):
    """The form that a judge fills in."""

    score: int = Field(ge=1, le=5)
    argument: str = Field(min_length=20)
    cites: list[str] = Field(description="numbers of exhibits, such as C3", default_factory=list)


class Opinion(BaseModel):
    judge: Judge
    criterion: str
    finding: Finding


class Verdict(BaseModel):
    criterion: Criterion
    score: int
    reasons: list[str]
    dissent: str = ""


class Case(TypedDict, total=False):
    url: str
    pdf: str
    out: str
    folder: str
    criteria: list[Criterion]
    problem: str
    exhibits: Annotated[list[Exhibit], operator.add]
    opinions: Annotated[list[Opinion], operator.add]
    verdicts: list[Verdict]


class Hearing(TypedDict):
    """The part of a case that one judge sees: never another judge's opinion."""

    judge: Judge
    criterion: Criterion
    exhibits: list[Exhibit]
