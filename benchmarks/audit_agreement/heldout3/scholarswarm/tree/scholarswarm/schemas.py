"""Schemas and state."""
import operator
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class SubQuestion(BaseModel):
    text: str
    keywords: list[str] = Field(default_factory=list)


class Plan(BaseModel):
    questions: list[SubQuestion] = Field(min_length=2, max_length=6)


class Paper(BaseModel):
    title: str
    authors: str
    year: int
    url: str
    abstract: str


class Note(BaseModel):
    question: str
    claim: str
    source: str
    relevance: float = Field(ge=0, le=1)


class Critique(BaseModel):
    score: float = Field(ge=0, le=1)
    gaps: list[str] = Field(default_factory=list)


class ReviewState(TypedDict):
    topic: str
    plan: Plan
    notes: Annotated[list[Note], operator.add]
    critique: Critique
    rounds: int
    draft: str
    verified: list[str]
    approved: bool


class ResearchTask(TypedDict):
    question: SubQuestion
