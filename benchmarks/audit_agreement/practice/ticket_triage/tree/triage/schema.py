from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import BaseModel, Field

Category = Literal["hardware", "access", "network", "other"]


class Guess(BaseModel):
    """A model's opinion about one ticket."""

    category: Category
    urgency: int = Field(ge=1, le=4)
    reason: str


def trail(old: list[str], new: list[str]) -> list[str]:
    return [*old, *new]


class Ticket(TypedDict):
    id: str
    text: str
    trail: Annotated[list[str], trail]
    category: NotRequired[Category]
    urgency: NotRequired[int]
    attempts: NotRequired[int]
    team: NotRequired[str]
