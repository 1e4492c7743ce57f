"""Data passed between agents."""
from enum import StrEnum
from operator import add
from typing import Annotated

from pydantic import BaseModel, Field


class Judge(StrEnum):
    PROSECUTOR = "prosecutor"
    DEFENSE = "defense"
    TECH_LEAD = "tech_lead"


class Fact(BaseModel):
    detective: str
    text: str
    place: str


class Opinion(BaseModel):
    judge: Judge
    criterion: str
    score: int = Field(ge=1, le=5)
    reasons: str


class Grading(BaseModel):
    repo_url: str
    workdir: str = ""
    facts: Annotated[list[Fact], add] = []
    opinions: Annotated[list[Opinion], add] = []
    grades: dict[str, float] = {}
    errors: Annotated[list[str], add] = []
