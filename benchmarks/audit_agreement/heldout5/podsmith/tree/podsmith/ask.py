"""All questions to the model."""

import json
import os
from functools import cache

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from .model import Chapter, Episode, Summary
from .transcript import Part


@cache
def llm() -> ChatOpenAI:
    return ChatOpenAI(model=os.environ.get("PODSMITH_MODEL", "gpt-4o-mini"), timeout=90, max_tokens=1500)


def summary(part: Part) -> Summary:
    found = llm().with_structured_output(Summary).invoke([
        SystemMessage("Summarise this part of a podcast. Quotes must be verbatim."), HumanMessage(part.text)
    ])
    # the model likes to invent quotes
    found.quotes = [quote for quote in found.quotes if quote.strip() and quote.lower() in part.text.lower()]
    return found


def chapters(episode: Episode, parts: list[Part]) -> list[Chapter]:
    heads = "\n".join(part.text[:1500] for part in parts)
    text = llm().invoke([
        SystemMessage('Find the chapters. Answer with JSON only: [{"second": 0, "title": "..."}]'),
        HumanMessage(f"{episode.title}\n{heads}"),
    ]).content
    start, end = text.find("["), text.rfind("]")
    try:
        return [Chapter(**one) for one in json.loads(text[start : end + 1])]
    except Exception:
        return [Chapter(second=part.start, title=f"Part {part.number + 1}") for part in parts]


def notes(episode: Episode, summaries: list[Summary]) -> str:
    gist = "\n\n".join(one.gist for one in summaries)
    names = sorted({name for one in summaries for name in one.names})
    quotes = "\n".join(f"> {quote}" for one in summaries for quote in one.quotes[:1])
    return llm().invoke([
        SystemMessage("Write show notes in Markdown, 200 to 300 words, no superlatives. Use the quotes as they are."),
        HumanMessage(f"{episode.title}, guest {episode.guest}\n\n{gist}\n\nNames: {', '.join(names)}\n{quotes}"),
    ]).content


def newsletter(episode: Episode, summaries: list[Summary]) -> str:
    return llm().invoke([
        SystemMessage("Write one paragraph for our newsletter. It should make curious and not tell everything."),
        HumanMessage(episode.title + "\n\n" + "\n".join(one.gist for one in summaries)),
    ]).content
