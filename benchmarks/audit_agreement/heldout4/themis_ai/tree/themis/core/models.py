"""Immutable records of the tribunal."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Persona(StrEnum):
    PROSECUTOR = "prosecutor"
    DEFENDER = "defender"
    TECH_LEAD = "tech_lead"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Evidence(Frozen):
    probe: str
    dimension: str
    finding: str
    location: str
    confidence: float = Field(ge=0.0, le=1.0)
    security: bool = False


class Opinion(Frozen):
    persona: Persona
    dimension: str
    score: int = Field(ge=1, le=5)
    argument: str
    citations: tuple[str, ...] = ()


class Verdict(Frozen):
    dimension: str
    score: int = Field(ge=1, le=5)
    rationale: str
    dissent: str | None = None
