from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Evidence(BaseModel):
    goal: str
    found: bool
    location: str
    content: str | None = None
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)


class JudicialOpinion(BaseModel):
    judge: Literal["Prosecutor", "Defense", "TechLead"]
    criterion_id: str
    score: int = Field(ge=1, le=5)
    argument: str
    cited_evidence: list[str]


class AgentState(TypedDict, total=False):
    repo_url: str
    pdf_path: str
    evidences: Annotated[dict[str, list[Evidence]], operator.ior]
    opinions: Annotated[list[JudicialOpinion], operator.add]
    errors: Annotated[list[str], operator.add]
    scores: dict[str, int]
    dissent: dict[str, str]
    report_path: str
