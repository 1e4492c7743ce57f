from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field


class Ballot(BaseModel):
    score: int = Field(ge=1, le=5)
    argument: str
    evidence: list[str]


@dataclass
class Exhibit:
    kind: str
    claim: str
    where: str
    ok: bool


@dataclass
class Docket:
    url: str
    exhibits: list[Exhibit] = field(default_factory=list)
    ballots: dict[str, dict[str, Any]] = field(default_factory=dict)
    final: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
