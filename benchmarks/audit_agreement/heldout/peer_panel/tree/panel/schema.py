from typing import Annotated, TypedDict
import operator
from pydantic import BaseModel, Field


class Fact(BaseModel):
    source: str
    statement: str
    line: int | None = None


class JudgeOpinion(BaseModel):
    judge: str = ""
    scores: dict[str, int] = Field(description="criterion -> 1..5")
    reasoning: str


class FinalScores(BaseModel):
    scores: dict[str, float]
    overall: float
    summary: str


class PanelState(TypedDict):
    url: str
    facts: Annotated[list[Fact], operator.add]
    opinions: Annotated[list[JudgeOpinion], operator.add]
    transcript: str
    variance: dict
    final: FinalScores
    report_path: str
