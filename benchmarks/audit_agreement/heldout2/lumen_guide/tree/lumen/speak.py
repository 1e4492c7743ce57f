from __future__ import annotations

from typing import Literal

from langchain_openai import ChatOpenAI
from langgraph.types import Command

from .state import Checked, Question, TourState


def llm(**more) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o-mini", timeout=20, max_retries=2, max_tokens=500, **more)


def sources(state: TourState) -> str:
    return "\n".join(f"[{p.id}] {p.text}" for p in state["passages"])


def listen(state: TourState) -> Command[Literal["research", "sorry"]]:
    chain = llm(temperature=0).with_structured_output(Question).with_retry(stop_after_attempt=2)
    q = chain.invoke(f"A visitor of a museum of scientific instruments asks:\n{state['asked'][:600]}")
    update = {"language": q.language, "english": q.english, "trail": [f"understood: {q.english}"]}
    return Command(goto="research" if q.about_museum else "sorry", update=update)


def anything_found(state: TourState) -> Literal["compose", "sorry"]:
    return "compose" if state.get("passages") else "sorry"


def draft(state: TourState) -> dict:
    text = llm(temperature=0.3).invoke([
        ("system", "You are a museum guide. Two short paragraphs, warm, only from the passages, with their ids in brackets."),
        ("user", f"{sources(state)}\n\n{state['english']}"),
    ]).content
    return {"draft": text, "trail": ["drafted"]}


def second_look(state: TourState) -> dict:
    """Hold each sentence of the draft against the passages, and correct it."""
    chain = llm(temperature=0).with_structured_output(Checked).with_retry(stop_after_attempt=3)
    checked = chain.invoke(
        f"Passages:\n{sources(state)}\n\nDraft:\n{state['draft']}\n\n"
        "List the sentences that no passage supports, and give the draft without them."
    )
    return {"checked": checked, "trail": [f"second look: {len(checked.wrong)} wrong"]}


def translate(state: TourState) -> dict:
    text = state["draft"]
    if state["language"].lower() != "english":
        text = llm(temperature=0).invoke(f"Translate into {state['language']}, keep the ids in brackets:\n\n{text}").content
    return {"answer": text, "trail": [f"in {state['language']}"]}


def sorry(state: TourState) -> dict:
    return {"answer": "I only know what stands in our catalogue. Please ask a member of staff.", "trail": ["sorry"]}
