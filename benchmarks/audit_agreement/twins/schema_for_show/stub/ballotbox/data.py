from operator import add, or_
from typing import Annotated

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Vote(BaseModel):
    score: int = Field(ge=1, le=5)
    why: str
    exhibits: list[str] = []


class Court(TypedDict, total=False):
    url: str
    exhibits: Annotated[dict[str, str], or_]
    votes: Annotated[list[tuple[str, Vote]], add]
    trouble: str
    verdict: dict[str, object]


class Bench(TypedDict):
    role: str
    exhibits: dict[str, str]
