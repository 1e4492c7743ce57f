"""Typed state of the Veritas Swarm."""
import operator
from typing import Annotated, Dict, List, Literal, Optional

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Evidence(BaseModel):
    """A single piece of forensic evidence."""

    goal: str = Field(description="What the detective was looking for")
    found: bool = Field(description="Whether the artifact exists")
    content: Optional[str] = Field(default=None, description="Extracted content")
    location: str = Field(description="File path or commit hash")
    rationale: str = Field(description="Reasoning for the confidence")
    confidence: float = Field(ge=0.0, le=1.0)


class JudicialOpinion(BaseModel):
    """The structured opinion of one judge."""

    judge: Literal["Prosecutor", "Defense", "TechLead"]
    criterion_id: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: List[str] = Field(default_factory=list)


class CriterionResult(BaseModel):
    criterion_id: str
    final_score: int
    dissent_summary: Optional[str] = None
    remediation: str = ""


class SwarmState(TypedDict):
    repo_url: str
    pdf_path: str
    rubric: List[dict]
    clone_ok: bool
    evidences: Annotated[Dict[str, List[Evidence]], operator.ior]
    opinions: Annotated[List[JudicialOpinion], operator.add]
    results: List[CriterionResult]
    final_report: str
