import os

from langchain_openai import ChatOpenAI

from .items import Draft, Forge, Objection, Objections
from .registry import node

PROMPTS = {
    "facts": "You know the subject. Object to every question whose marked answer is wrong or whose other options are right too.",
    "wording": "You are a student who reads quickly. Object to each question that you could misunderstand.",
}


def bound(schema):
    llm = ChatOpenAI(model=os.environ.get("QUIZFORGE_MODEL", "gpt-4o-mini"), timeout=60)
    return llm.with_structured_output(schema).with_retry(stop_after_attempt=3)


@node("write")
async def write(s: Forge) -> dict:
    missing = s["wanted"] - len(s.get("kept", {}))
    draft = await bound(Draft).ainvoke([("system", f"Write {missing} multiple choice questions about these notes."), ("human", s["notes"])])
    return {"draft": draft.questions, "rounds": s.get("rounds", 0) + 1}


def show(s: Forge) -> str:
    return "\n".join(f"{i}. {q.text} {q.options} -> {q.answer}" for i, q in enumerate(s["draft"]))


@node("facts", checker=True)
async def facts(s: Forge) -> dict:
    found = await bound(Objections).ainvoke([("system", PROMPTS["facts"]), ("human", s["notes"] + "\n\n" + show(s))])
    return {"objections": found.found}


@node("wording", checker=True)
async def wording(s: Forge) -> dict:
    found = await bound(Objections).ainvoke([("system", PROMPTS["wording"]), ("human", show(s))])
    return {"objections": found.found}


@node("support", checker=True)
async def support(s: Forge) -> dict:
    """By rule: the quotation must stand in the notes."""
    flat = " ".join(s["notes"].split())
    return {"objections": [Objection(number=i, kind="unsupported", why=q.quote)
                           for i, q in enumerate(s["draft"]) if " ".join(q.quote.split()) not in flat]}


@node("edit")
async def edit(s: Forge) -> dict:
    """Keep what nobody objects to."""
    recent = s["objections"][s.get("_seen", 0):]
    refused = {o.number for o in recent}
    return {"kept": {q.text: q for i, q in enumerate(s["draft"]) if i not in refused}}
