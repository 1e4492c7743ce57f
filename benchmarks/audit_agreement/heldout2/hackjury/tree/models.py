import operator
from typing import Annotated, List, TypedDict

from pydantic import BaseModel, Field


class Fact(BaseModel):
    source: str
    name: str
    ok: bool
    detail: str = ""


class JurorAnswer(BaseModel):
    score: int = Field(ge=1, le=5, description="1 is poor, 5 is great")
    comment: str


class JuryState(TypedDict):
    repo_url: str
    pitch: str
    folder: str
    facts: Annotated[List[Fact], operator.add]
    opinions: Annotated[list, operator.add]   # dicts: juror, score, comment
    final: dict
