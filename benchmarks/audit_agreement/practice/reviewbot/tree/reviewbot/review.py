import os

from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel, Field

from .diff import FileChange
from .tools import grep, read_file


class Comment(BaseModel):
    path: str
    line: int = Field(ge=1)
    severity: int = Field(ge=1, le=3, description="3 must be fixed before the merge")
    text: str = Field(max_length=600)


class Review(BaseModel):
    """All comments on one change."""

    comments: list[Comment] = []
    summary: str


PROMPT = """You review a change as a colleague. Look files up before you assert anything. Comment on errors, races, security and
missing tests, never on style that a formatter handles. No comment is better than a doubtful one."""


def reviewer():
    model = ChatOpenAI(model=os.getenv("REVIEWBOT_MODEL", "gpt-4o"), timeout=90, max_retries=3)
    return create_react_agent(model, [read_file, grep], prompt=PROMPT, response_format=Review)


def review(text: str) -> Review:
    limit = int(os.getenv("REVIEWBOT_MAX_STEPS", "20"))
    try:
        end = reviewer().invoke({"messages": [("user", text)]}, {"recursion_limit": limit})
    except GraphRecursionError:
        return Review(summary=f"stopped after {limit} steps")
    return Review.model_validate(end["structured_response"])


def placed(result: Review, changes: list[FileChange]) -> tuple[list[Comment], list[Comment]]:
    """Comments on lines that the change added, most severe first, and those that miss it."""
    added = {c.path: c.added for c in changes}
    hit, missed = [], []
    for comment in result.comments:
        (hit if comment.line in added.get(comment.path, {}) else missed).append(comment)
    return sorted(hit, key=lambda c: -c.severity), missed


def verdict(comments: list[Comment]) -> str:
    if any(c.severity == 3 for c in comments):
        return "changes requested"
    return "approved with remarks" if comments else "approved"
