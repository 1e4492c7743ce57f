"""Domain model."""
from __future__ import annotations

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field


class Candidate(BaseModel):
    address: str
    text: str
    redacted: str = ""


class Requirement(BaseModel):
    name: str
    weight: int = Field(ge=1, le=5)
    mandatory: bool = False


class Profile(BaseModel):
    """What the job asks for."""

    title: str
    requirements: list[Requirement]


class Assessment(BaseModel):
    """How well a candidate fits each requirement."""

    address: str = ""
    fulfilled: list[str] = Field(description="names of fulfilled requirements")
    score: int = Field(ge=0, le=100)
    explanation: str


class BiasReport(BaseModel):
    passed: bool
    ratio: float
    note: str


class Decision(BaseModel):
    address: str
    status: Literal["shortlisted", "rejected"]
    reason: str


class ScreeningState(TypedDict, total=False):
    job: str
    places: int
    candidates: list[Candidate]
    profile: Profile
    assessments: Annotated[list[Assessment], operator.add]
    bias: BiasReport
    approved: bool
    decisions: list[Decision]
    notified: Annotated[list[str], operator.add]


class AssessInput(TypedDict):
    candidate: Candidate
    profile: Profile
