from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, Field

Master = Literal["accuser", "patron", "craftsman"]


class Exhibit(BaseModel):
    number: str
    topic: Literal["history", "workflow", "safety", "paper"]
    holds: bool
    says: str
    where: str
    danger: bool = False


class Vote(BaseModel):
    """What a master answers."""

    score: int = Field(ge=1, le=5)
    argument: str
    exhibits: list[str] = Field(default_factory=list, description="numbers of the exhibits that support the score")


class Ballot(BaseModel):
    master: Master
    topic: str
    vote: Vote


class Ruling(BaseModel):
    topic: str
    score: int
    grounds: list[str] = Field(default_factory=list)
    dissent: str = ""


TOPICS = {
    "history": "Was it made in steps that can be followed?",
    "workflow": "Does independent work run side by side, and do failures have a way out?",
    "safety": "Are programs started without a shell and with limits?",
    "paper": "Does the paper explain the program, and is it true?",
}


@dataclass
class Hall:
    url: str
    paper: str
    folder: str = ""
    exhibits: Annotated[list[Exhibit], operator.add] = field(default_factory=list)
    ballots: Annotated[list[Ballot], operator.add] = field(default_factory=list)
    complaints: Annotated[list[str], operator.add] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)
