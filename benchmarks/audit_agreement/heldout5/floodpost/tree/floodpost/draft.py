"""The wording of a warning. The level is decided before; the model writes it down."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import ValidationError

from .model import Draft, Level, Reading

TRIES = 2
SYSTEM = """Write a flood warning in plain German, for people without training. Name the gauges and their heights.
Do not soften or sharpen the level that you are given, and promise nothing about the hours to come."""
ADVICE = {
    Level.YELLOW: "Keller räumen, Fahrzeuge vom Ufer entfernen.",
    Level.ORANGE: "Uferwege meiden, Sandsäcke setzen, auf Durchsagen achten.",
    Level.RED: "Gefährdete Häuser verlassen, Notruf 112.",
}


@cache
def writer() -> Any:
    llm = ChatOpenAI(model=os.environ.get("FLOODPOST_MODEL", "gpt-4o-mini"), timeout=30, max_tokens=500)
    return llm.with_structured_output(Draft)


def template(level: Level, readings: list[Reading]) -> Draft:
    """The text without a model: a warning must not wait for one."""
    heights = ", ".join(f"{one.name} {one.centimetres:.0f} cm" for one in readings)
    return Draft(headline=f"Hochwasser: Stufe {level.name}"[:60], body=f"{heights}. {ADVICE[level]}"[-400:])


def write(level: Level, readings: list[Reading]) -> Draft:
    facts = "\n".join(f"{one.name}: {one.centimetres:.0f} cm, {one.per_hour:+.1f} cm/h" for one in readings)
    messages = [SystemMessage(SYSTEM), HumanMessage(f"Level {level.name}\n{facts}\nAdvice: {ADVICE[level]}")]
    for _ in range(TRIES):
        try:
            found = writer().invoke(messages)
        except (ValidationError, OutputParserException) as error:
            messages.append(HumanMessage(f"That does not fit: {error}"))
            continue
        except OpenAIError:
            break
        if isinstance(found, Draft):
            return found
    return template(level, readings)
