import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, conint


class Opinion(BaseModel):
    who: str = ""
    score: conint(ge=1, le=5)
    argument: str
    citations: list[str] = []


def merge(a: dict | None, b: dict | None) -> dict:
    return {**(a or {}), **(b or {})}


@dataclass
class Docket:
    repo: str
    pdf: str | None = None
    tries: int = 0
    clues: Annotated[dict[str, Any], merge] = field(default_factory=dict)
    opinions: Annotated[list[Opinion], operator.add] = field(default_factory=list)
    second_round: bool = False
    verdict: str = ""
