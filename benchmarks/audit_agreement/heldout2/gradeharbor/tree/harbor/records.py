"""What travels through the graph."""
import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

Role = Literal["prosecutor", "advocate", "engineer"]


class Clue(BaseModel):
    """Something that a watch saw, with the place where it saw it."""

    key: str
    criterion: str
    seen: bool
    text: str
    danger: bool = False


class Vote(BaseModel):
    """The answer that a model must give."""

    score: int = Field(ge=1, le=5)
    argument: str = Field(min_length=10)
    clue_keys: list[str] = Field(default_factory=list)


class Opinion(BaseModel):
    role: Role
    criterion: str
    round: int
    vote: Vote


class Mark(BaseModel):
    criterion: str
    score: int
    notes: list[str]


def by_key(old: dict[str, Clue], new: dict[str, Clue]) -> dict[str, Clue]:
    """Two watches may write in the same step; a clue that says 'seen' is never replaced by one that does not."""
    merged = dict(old or {})
    for key, clue in (new or {}).items():
        if key not in merged or clue.seen:
            merged[key] = clue
    return merged


class Voyage(TypedDict, total=False):
    url: str
    pdf: str
    checkout: str
    problem: str
    clues: Annotated[dict[str, Clue], by_key]
    opinions: Annotated[list[Opinion], operator.add]
    marks: list[Mark]
    written: str


class BenchInput(TypedDict):
    criterion: str
    clues: list[Clue]
    round: int
    earlier: list[Opinion]


class BenchOutput(TypedDict):
    opinions: Annotated[list[Opinion], operator.add]


class BenchState(BenchInput, BenchOutput):
    pass
