from pydantic import BaseModel, Field


class Summary(BaseModel):
    """Ten minutes of an episode."""

    gist: str
    names: list[str] = Field(default_factory=list, description="people, places, organisations that are named")
    quotes: list[str] = Field(default_factory=list)


class Chapter(BaseModel):
    second: int = Field(ge=0)
    title: str


class Episode(BaseModel):
    key: str
    title: str
    guest: str = ""
    path: str
    publish: bool = False


class Package(BaseModel):
    notes: str
    newsletter: str
    chapters: list[Chapter]
    link: str = ""
