"""Reading the wish. The only place where a model is asked."""

from __future__ import annotations

import os
from datetime import date
from functools import cache
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import ValidationError

from .state import Wish

TRIES = 2
INSTRUCTIONS = """Read a travel wish. Today is {today}. Names of stations as the railway writes them.
Leave every field empty that the customer did not say. Later texts correct earlier ones."""


class Unreadable(Exception):
    """The model gave no wish that fits the form."""


@cache
def reader() -> Any:
    llm = ChatOpenAI(model=os.environ.get("FERNWEH_MODEL", "gpt-4o-mini"), temperature=0, timeout=30, max_tokens=400)
    return llm.with_structured_output(Wish)


def read(texts: list[str], today: date) -> Wish:
    messages = [SystemMessage(INSTRUCTIONS.format(today=today.isoformat())), HumanMessage("\n---\n".join(texts))]
    for _ in range(TRIES):
        try:
            wish = reader().invoke(messages)
        except (ValidationError, OutputParserException) as error:
            messages.append(HumanMessage(f"This does not fit the form: {error}. Fill it in again."))
            continue
        except OpenAIError as error:
            raise Unreadable(f"the model does not answer: {error}") from error
        if isinstance(wish, Wish):
            return wish
    raise Unreadable(f"no valid wish after {TRIES} tries")
