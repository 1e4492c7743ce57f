from typing import TypedDict, List, Dict
from pydantic import BaseModel, Field


class Opinion(BaseModel):
    judge: str
    score: int = Field(..., ge=1, le=5)
    argument: str
    evidence: List[str]


class BenchState(TypedDict):
    url: str
    evidence: Dict[str, str]
    opinions: List[Opinion]
    final_score: float
    error: str
