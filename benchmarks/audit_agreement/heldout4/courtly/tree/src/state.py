import operator
from typing import Annotated, Dict, List, Literal, Optional

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Evidence(BaseModel):
    goal: str
    found: bool
    content: Optional[str] = None
    location: str
    rationale: str
    confidence: float = Field(ge=0, le=1)


class JudicialOpinion(BaseModel):
    judge: Literal["Prosecutor", "Defense", "TechLead"]
    criterion_id: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: List[str] = Field(default_factory=list)


class CriterionResult(BaseModel):
    criterion_id: str
    name: str
    final_score: int
    opinions: List[JudicialOpinion]
    dissent: Optional[str] = None


class AgentState(TypedDict):
    repo_url: str
    pdf_path: str
    repo_dir: str
    rubric: List[dict]
    # operator.ior so that parallel detectives do not overwrite each other
    evidences: Annotated[Dict[str, List[Evidence]], operator.ior]
    opinions: Annotated[List[JudicialOpinion], operator.add]
    errors: Annotated[List[str], operator.add]
    results: List[CriterionResult]
