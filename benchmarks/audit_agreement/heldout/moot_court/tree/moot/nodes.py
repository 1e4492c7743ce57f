import logging
import os

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.types import Send
from pydantic import ValidationError

from . import tools
from .models import Case, Finding, Opinion, Seat
from .personas import PERSONAS

log = logging.getLogger(__name__)
TRIES = 3


def code_detective(case: Case) -> dict:
    try:
        with tools.checkout(case["repo_url"]) as repo:
            return {"findings": {"code": [tools.git_log(repo), *tools.graph_calls(repo)]}}
    except tools.CloneFailed as exc:
        return {"problems": [f"repository: {exc}"], "findings": {"code": []}}


def paper_detective(case: Case) -> dict:
    try:
        pages = tools.pdf_pages(case["pdf"])
    except Exception as exc:  # pymupdf has its own zoo
        log.warning("report unreadable: %s", exc)
        return {"problems": [f"report: {exc}"]}
    found = [Finding(topic="report", present=True, where=f"p. {n}", excerpt=text[:500]) for n, text in enumerate(pages, 1)]
    return {"findings": {"paper": found}}


def clerk(case: Case) -> dict:
    """The join: puts the topics on the docket."""
    return {"topics": ["history", "graph", "report"]}


def call_judges(case: Case):
    """Each judge hears each topic, side by side. Without the repository there is no case."""
    if not case["findings"].get("code"):
        return "no_case"
    return [
        Send("judge", Seat(judge=judge, topic=topic, findings=case["findings"]))
        for judge in PERSONAS for topic in case["topics"]
    ]


def no_case(case: Case) -> dict:
    return {"problems": ["dismissed: nothing to judge"]}


def judge(seat: Seat) -> dict:
    llm = ChatOpenAI(model=os.environ.get("MOOT_MODEL", "gpt-4o-mini"), temperature=0, timeout=60)
    bench = llm.with_structured_output(Opinion)
    facts = [f for group in seat["findings"].values() for f in group if f.topic == seat["topic"]]
    messages = [
        SystemMessage(PERSONAS[seat["judge"]]),
        HumanMessage(f"Topic: {seat['topic']}\nFindings:\n" + "\n".join(f.model_dump_json() for f in facts)),
    ]
    for attempt in range(TRIES):
        try:
            answer = bench.invoke(messages)
        except (ValidationError, ValueError) as exc:
            log.info("%s, try %d: %s", seat["judge"], attempt, exc)
            messages.append(HumanMessage(f"That did not fit the schema ({exc}). Once more."))
            continue
        opinion = Opinion.model_validate(answer)
        return {"opinions": [opinion.model_copy(update={"judge": seat["judge"], "topic": seat["topic"]})]}
    return {"problems": [f"{seat['judge']} gave no usable opinion on {seat['topic']}"]}
