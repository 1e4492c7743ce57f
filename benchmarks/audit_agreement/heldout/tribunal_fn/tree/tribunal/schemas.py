from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypedDict

from pydantic import BaseModel, Field


class Role(str, Enum):
    PROSECUTOR = "prosecutor"
    DEFENDER = "defender"
    ENGINEER = "engineer"


class Request(TypedDict):
    repo: str
    report: str | None


@dataclass(frozen=True)
class Exhibit:
    name: str
    text: str
    ok: bool = True


class Vote(BaseModel):
    """The schema the model must fill."""

    score: int = Field(ge=1, le=5, description="1 bad, 5 excellent")
    argument: str = Field(min_length=10)
    exhibits: list[str] = Field(description="names of the exhibits relied upon")


@dataclass(frozen=True)
class Ballot:
    role: Role
    criterion: str
    vote: Vote


@dataclass
class Verdict:
    scores: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)

    @property
    def overall(self) -> float:
        return sum(self.scores.values()) / len(self.scores)
