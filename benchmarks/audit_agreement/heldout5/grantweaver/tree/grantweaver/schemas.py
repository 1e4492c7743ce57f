import operator
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class Requirement(BaseModel):
    heading: str = Field(description="heading of the section that the funder wants")
    question: str
    max_words: int = Field(default=300, ge=30, le=3000)


class Call(BaseModel):
    """A call for applications."""

    funder: str
    programme: str
    deadline: str | None = None
    max_eur: float | None = None
    requirements: list[Requirement] = Field(min_length=1)


class Section(BaseModel):
    heading: str
    text: str


class Review(BaseModel):
    ok: bool
    complaints: list[str] = Field(default_factory=list)


class CallState(TypedDict, total=False):
    url: str
    page: str
    call: Call
    problems: Annotated[list[str], operator.add]


class DraftState(TypedDict, total=False):
    call: Call
    profile: str
    requirement: Requirement
    text: str
    review: Review
    rounds: int
    sections: Annotated[list[Section], operator.add]


class Drafted(TypedDict):
    """All that a branch hands back; call and profile must not be written by each of them."""

    sections: Annotated[list[Section], operator.add]


class GrantState(TypedDict, total=False):
    url: str
    profile: str
    call: Call
    problems: Annotated[list[str], operator.add]
    sections: Annotated[list[Section], operator.add]
    application: str
