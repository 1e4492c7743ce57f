import operator
from typing import Annotated, Dict, List

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Evidence(BaseModel):
    goal: str
    found: bool
    location: str
    confidence: float = Field(ge=0, le=1)


class JudicialOpinion(BaseModel):
    judge: str
    criterion_id: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: List[str]


class AgentState(TypedDict):
    repo_url: str
    pdf_path: str
    evidences: Annotated[Dict[str, List[Evidence]], operator.ior]
    opinions: Annotated[List[JudicialOpinion], operator.add]
    final_report: str
