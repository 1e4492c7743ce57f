from typing import TypedDict

from pydantic import BaseModel, Field


class Plan(BaseModel):
    """Questions to be looked into, each on its own."""

    subquestions: list[str] = Field(min_length=1, max_length=6)


class Snippet(BaseModel):
    source: str
    text: str
    score: float


class Critique(BaseModel):
    good_enough: bool
    missing: list[str] = []


class Research(TypedDict, total=False):
    question: str
    notes: str
    plan: list[str]
    # TODO check how this behaves when several diggers come back together
    snippets: list[Snippet]
    article: str
    round: int
    critique: Critique


class Dig(TypedDict):
    subquestion: str
    notes: str
