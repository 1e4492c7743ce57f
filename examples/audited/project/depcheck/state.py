"""The state that the graph hands from node to node."""

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Reviewer = Literal["sceptic", "advocate", "maintainer"]


class Fact(BaseModel):
    """Something that an inspector saw in the clone."""

    inspector: str
    text: str
    good: bool
    path: str = "."


class Review(BaseModel):
    """A reviewer's reading of the facts."""

    reviewer: Reviewer
    score: int = Field(ge=1, le=5)
    reasons: list[str]


class Verdict(BaseModel):
    """The end of it."""

    score: int = Field(ge=1, le=5)
    rules: list[str]
    dissent: str | None = None


class State(TypedDict, total=False):
    """Inspectors add facts, reviewers add reviews; neither overwrites what another has written."""

    url: str
    folder: str
    problem: str
    facts: Annotated[list[Fact], operator.add]
    reviews: Annotated[dict[str, Review], operator.ior]
    verdict: Verdict
