"""The agents of the swarm."""
import logging
import re

from langchain_openai import ChatOpenAI
from langgraph.types import Send, interrupt

from .arxiv import search_papers
from .schemas import Critique, Note, Plan, ResearchTask, ReviewState

log = logging.getLogger(__name__)

MAX_ROUNDS = 0
THRESHOLD = 0.6


def llm(temperature: float = 0.0) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", temperature=temperature, timeout=60)


def planner(state: ReviewState) -> dict:
    """Break the topic into sub-questions."""
    plan = llm().with_structured_output(Plan).invoke(
        f"Break this research question into two to six sub-questions with keywords: {state['topic']}"
    )
    return {"plan": plan, "rounds": 0}


def dispatch(state: ReviewState) -> list[Send]:
    return [Send("researcher", {"question": question}) for question in state["plan"].questions]


def researcher(task: ResearchTask) -> dict:
    """Search, read and extract claims for one sub-question."""
    question = task["question"]
    papers = search_papers(question.keywords)
    notes = [
        Note(question=question.text, claim=paper.abstract.split(". ")[0], source=paper.url, relevance=0.9)
        for paper in papers
    ]
    log.info("%d notes for %s", len(notes), question.text)
    return {"notes": notes}


def critic(state: ReviewState) -> dict:
    """Judge whether the notes answer the question."""
    listing = "\n".join(f"- {note.claim} [{note.source}]" for note in state["notes"])
    critique = llm().with_structured_output(Critique).invoke(
        f"Question: {state['topic']}\nNotes:\n{listing}\n\nScore the coverage from 0 to 1 and name the gaps."
    )
    return {"critique": critique, "rounds": state["rounds"] + 1}


def after_critic(state: ReviewState):
    """Send weak research back to the swarm."""
    if state["critique"].score < THRESHOLD and state["rounds"] <= MAX_ROUNDS:
        return dispatch(state)
    return "writer"


def writer(state: ReviewState) -> dict:
    """Compose the review from the evidence."""
    sections = "\n".join(f"- {question.text}" for question in state["plan"].questions)
    draft = llm(0.7).invoke(
        "Write an academic literature review with citations in square brackets and a list of references.\n"
        f"Topic: {state['topic']}\nSections:\n{sections}"
    ).content
    return {"draft": draft}


def verifier(state: ReviewState) -> dict:
    """Verify every citation against the notes."""
    cited = re.findall(r"\[([^\]]+)\]", state["draft"])
    known = {note.source for note in state["notes"]}
    verified = [citation for citation in cited if citation in known]
    log.info("%d of %d citations verified", len(verified), len(cited))
    return {"verified": verified}


def approval(state: ReviewState) -> dict:
    """A human approves before publication."""
    answer = interrupt({"draft": state["draft"], "verified": len(state["verified"])})
    return {"approved": answer == "yes"}
