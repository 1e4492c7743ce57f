from __future__ import annotations

from operator import add
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class Passage(BaseModel):
    id: str
    text: str
    rank: float


class Question(BaseModel):
    """A visitor's question, understood."""

    language: str = Field(description="English name of the language that the visitor writes")
    english: str = Field(description="the question in English")
    about_museum: bool


class Checked(BaseModel):
    """A draft after the second look."""

    supported: bool
    wrong: list[str] = Field(default_factory=list, description="sentences that no passage supports")
    corrected: str


def best_first(old: list[Passage], new: list[Passage]) -> list[Passage]:
    known = {p.id: p for p in [*old, *new]}
    return sorted(known.values(), key=lambda p: -p.rank)[:6]


class ResearchState(TypedDict):
    english: str
    passages: Annotated[list[Passage], best_first]


class TourState(TypedDict, total=False):
    asked: str
    language: str
    english: str
    passages: Annotated[list[Passage], best_first]
    draft: str
    checked: Checked
    answer: str
    trail: Annotated[list[str], add]
