from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Role(StrEnum):
    PROSECUTOR = "prosecutor"
    DEFENDER = "defender"
    TECH_LEAD = "tech lead"


class Sample(BaseModel):
    model_config = ConfigDict(frozen=True)
    id: str
    text: str
    alarm: bool = False


class Ballot(BaseModel):
    """Filled in by a model."""

    grade: int = Field(ge=1, le=5)
    reason: str = Field(min_length=5, max_length=900)
    samples: list[str]


@dataclass(frozen=True)
class Signed:
    role: Role
    question: str
    ballot: Ballot


@dataclass
class Grade:
    question: str
    value: int
    remarks: list[str] = field(default_factory=list)
