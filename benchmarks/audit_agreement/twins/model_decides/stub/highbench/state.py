import operator
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class Clue(BaseModel):
    place: str
    text: str


class Opinion(BaseModel):
    judge: str = ""
    score: int = Field(ge=1, le=5)
    argument: str
    places: list[str] = []


class State(TypedDict, total=False):
    url: str
    clues: Annotated[list[Clue], operator.add]
    opinions: Annotated[list[Opinion], operator.add]
    score: float
