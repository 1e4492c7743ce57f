"""What a model may say about a clause, and whether it stands there."""

import re
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, Field

from .contract import Clause

Kind = Literal["duty", "right", "deadline", "money", "liability", "end", "other"]


class Point(BaseModel):
    kind: Kind
    says: str = Field(max_length=240)
    quote: str = Field(min_length=8)


class Points(BaseModel):
    points: list[Point] = Field(max_length=8)


@dataclass
class Summary:
    clause: Clause
    points: list[Point] = field(default_factory=list)
    dropped: int = 0
    problem: str = ""


def plain(text: str) -> str:
    text = text.translate({0x201C: '"', 0x201D: '"', 0x2019: "'", 0xA0: " "})
    return re.sub(r"\s+", " ", text).strip().casefold()


def quoted(point: Point, clause: Clause) -> bool:
    return plain(point.quote) in plain(clause.text)


def checked(clause: Clause, points: Points) -> Summary:
    kept = [point for point in points.points if quoted(point, clause)]
    dropped = len(points.points) - len(kept)
    problem = "no point could be found in the clause" if dropped and not kept else ""
    return Summary(clause, kept, dropped, problem)
