from __future__ import annotations

import os
from functools import cache
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import ValidationError

from .records import Candidate, Choice, Position

TRIES = 3
SYSTEM = """You classify goods for customs. Choose among the candidates only. Materials and use decide, not the brand.
If the text leaves open what the thing is made of, say that you are not sure."""


@cache
def chooser() -> Any:
    llm = ChatOpenAI(model=os.environ.get("CUSTOMSDESK_MODEL", "gpt-4o"), temperature=0, timeout=40, max_tokens=300)
    return llm.with_structured_output(Choice)


def choose(position: Position, candidates: list[Candidate]) -> Choice:
    """A candidate. If the model gives none in three tries, the first one, which counts as unsure."""
    allowed = {one.code for one in candidates}
    listed = "\n".join(f"{one.code} {one.text}" for one in candidates)
    messages = [SystemMessage(SYSTEM), HumanMessage(f"Goods: {position.text}\nOrigin: {position.origin}\n\n{listed}")]
    for _ in range(TRIES):
        try:
            choice = chooser().invoke(messages)
        except (ValidationError, OutputParserException) as error:
            messages.append(HumanMessage(f"Not usable: {error}"))
            continue
        except OpenAIError:
            break
        if isinstance(choice, Choice) and choice.code in allowed:
            return choice
        messages.append(HumanMessage("This number is not among the candidates."))
    return Choice(code=candidates[0].code, reason="no usable answer; first candidate", sure=False)
