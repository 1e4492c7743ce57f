"""State of one article on its way over the desk."""

from enum import StrEnum
from typing import Annotated, TypedDict

from pydantic import BaseModel, Field


class Kind(StrEnum):
    NUMBER = "number"
    DATE = "date"
    PERSON = "person"
    QUOTE = "quote"
    PLACE = "place"


class Sentence(BaseModel):
    """A sentence that states something which can be looked up."""

    text: str = Field(description="verbatim from the article")
    kind: Kind
    keywords: list[str] = Field(min_length=1, max_length=5)


class Checkable(BaseModel):
    sentences: list[Sentence]


class Hit(BaseModel):
    id: str
    title: str
    published: str
    excerpt: str


class Finding(StrEnum):
    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    OPEN = "open"


class Ruling(BaseModel):
    """What the archive says about one sentence."""

    finding: Finding
    because: str = Field(max_length=400)
    sources: list[str] = Field(default_factory=list, description="ids of hits")


class Note(BaseModel):
    sentence: Sentence
    ruling: Ruling


def collected(before: list[Note] | None, new: list[Note] | None) -> list[Note]:
    """Notes of sentences that are checked side by side."""
    return new or before or []


class Article(TypedDict, total=False):
    text: str
    sentences: list[Sentence]
    notes: Annotated[list[Note], collected]
    margin: str
    failure: str


class Slip(TypedDict):
    """One sentence with its article's text, for one checker."""

    sentence: Sentence
    text: str
