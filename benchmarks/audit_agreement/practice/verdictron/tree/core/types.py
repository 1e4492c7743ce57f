from typing import Annotated, TypedDict
import operator
from pydantic import BaseModel, Field


class Evidence(BaseModel):
    found: bool
    location: str
    rationale: str


class JudicialOpinion(BaseModel):
    judge: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: list[str]


class AgentState(TypedDict):
    repo_url: str
    evidences: Annotated[dict, operator.ior]
    opinions: Annotated[list, operator.add]
