from typing import Literal

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel, Field

from .tools import make_tools

PROMPT = """You are a senior engineer who reviews pull requests.
Read the diff, look at the files around it with your tools, and then give your review.
Only comment on lines that were changed. Be specific and friendly. Do not comment on formatting.

Rules of this repository:
{rules}
"""


class Comment(BaseModel):
    path: str
    line: int
    severity: Literal["nit", "minor", "major", "blocker"]
    body: str


class Review(BaseModel):
    summary: str
    comments: list[Comment] = Field(default_factory=list)
    confidence: float = 0.5


MAX_DIFF = 60_000


def review(path, diff, rules) -> Review:
    llm = ChatOpenAI(model="gpt-4o", temperature=0.1)
    agent = create_react_agent(llm, make_tools(path), prompt=PROMPT.format(rules=rules or "none"), response_format=Review)
    out = agent.invoke(
        {"messages": [("user", f"The diff:\n\n{diff[:MAX_DIFF]}")]},
        {"recursion_limit": 40},
    )
    return out["structured_response"]


def summarize_big_diff(diff):
    """Map-reduce summary of diffs that do not fit."""
    llm = ChatOpenAI(model="gpt-4o-mini")
    parts = [diff[i:i + MAX_DIFF] for i in range(0, len(diff), MAX_DIFF)]
    return "\n".join(llm.invoke(f"Summarize this diff:\n{p}").content for p in parts)
