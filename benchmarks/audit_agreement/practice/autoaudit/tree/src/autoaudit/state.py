import operator
from typing import Annotated, Dict, List, Optional, TypedDict

from pydantic import BaseModel, Field


class Evidence(BaseModel):
    """One forensic fact."""
    goal: str
    found: bool
    content: Optional[str] = None
    location: str
    rationale: str = ""
    confidence: float = Field(1.0, ge=0, le=1)


class JudicialOpinion(BaseModel):
    judge: str
    criterion_id: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: List[str] = []


class AuditState(TypedDict, total=False):
    repo_url: str
    pdf_path: str
    repo_dir: str
    evidences: Annotated[Dict[str, List[Evidence]], operator.or_]
    opinions: Annotated[List[JudicialOpinion], operator.add]
    failures: Annotated[List[str], operator.add]
    final: Dict[str, int]
    notes: List[str]
