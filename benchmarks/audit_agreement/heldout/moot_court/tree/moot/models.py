"""What travels through the graph."""
import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field


class Finding(BaseModel):
    topic: str
    present: bool
    where: str = ""
    excerpt: str = ""


class Opinion(BaseModel):
    """A judge's answer about one topic."""

    judge: Literal["prosecutor", "defense", "tech_lead"]
    topic: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited: list[str] = Field(default_factory=list)


class Ruling(BaseModel):
    topic: str
    score: int
    notes: list[str] = []


class Case(TypedDict, total=False):
    repo_url: str
    pdf: str
    topics: list[str]
    findings: Annotated[dict[str, list[Finding]], operator.ior]
    opinions: Annotated[list[Opinion], operator.add]
    problems: Annotated[list[str], operator.add]
    rulings: list[Ruling]
    out: str


class Seat(TypedDict):
    """What one judge gets by Send."""

    judge: str
    topic: str
    findings: dict[str, list[Finding]]
