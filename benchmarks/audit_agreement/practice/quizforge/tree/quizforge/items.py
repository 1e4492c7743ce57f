from operator import add
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field, model_validator


class Question(BaseModel):
    text: str
    options: list[str] = Field(min_length=3, max_length=5)
    answer: int = Field(ge=0)
    quote: str = Field(description="the sentence of the notes that holds the answer")

    @model_validator(mode="after")
    def answer_is_an_option(self):
        if self.answer >= len(self.options):
            raise ValueError("answer is no option")
        return self


class Draft(BaseModel):
    """A set of questions."""

    questions: list[Question] = Field(min_length=1)


class Objection(BaseModel):
    number: int
    kind: Literal["wrong", "unclear", "unsupported"]
    why: str


class Objections(BaseModel):
    found: list[Objection] = []


class Forge(TypedDict, total=False):
    notes: str
    wanted: int
    draft: list[Question]
    objections: Annotated[list[Objection], add]
    kept: Annotated[dict[str, Question], lambda a, b: {**a, **b}]
    rounds: int
