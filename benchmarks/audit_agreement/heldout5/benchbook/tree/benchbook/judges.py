"""Three judges who do not want the same."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import ValidationError

from .records import Criterion, Finding, Opinion, Role, Vote

TRIES = 3
PHILOSOPHY: dict[Role, str] = {
    "prosecutor": """You prosecute. Assume that what is not shown is not there. Missing tests, shells and claims
without code are charges; name each with its finding. Good intentions do not count. If you hesitate between
two scores, give the lower one.""",
    "defence": """You defend people who learn. Look for understanding behind clumsy code: a good idea that is half
done is worth more than an empty form that is complete. Say what the history shows about the way
they went. If you hesitate between two scores, give the higher one.""",
    "engineer": """You have to run this next year. Neither blame nor praise interests you: would it work, can it be
changed, does it fail loudly? Give 1, 3 or 5 and use 2 and 4 only with a reason.""",
}


class NoOpinion(Exception):
    pass


@cache
def bound() -> Any:
    llm = ChatOpenAI(model=os.environ.get("BENCHBOOK_MODEL", "gpt-4o"), temperature=0, timeout=60, max_tokens=700)
    return llm.with_structured_output(Vote)


def file_of(criterion: Criterion, findings: list[Finding]) -> str:
    lines = [f"[{one.id}] {'yes' if one.holds else 'NO'}: {one.statement} ({one.place})"
             for one in findings if one.criterion == criterion.id]
    return f"Criterion: {criterion.name}: {criterion.look}\n" + "\n".join(lines or ["nothing was found"])


def judge(role: Role, criterion: Criterion, findings: list[Finding]) -> Opinion:
    known = {one.id for one in findings if one.criterion == criterion.id}
    messages = [SystemMessage(PHILOSOPHY[role]), HumanMessage(file_of(criterion, findings))]
    cause = ""
    for _ in range(TRIES):
        try:
            vote = bound().invoke(messages)
        except (ValidationError, OutputParserException) as error:
            cause = str(error)
        except OpenAIError as error:
            raise NoOpinion(f"{role}: {error}") from error
        else:
            unknown = set(vote.cites) - known if isinstance(vote, Vote) else {"nothing"}
            if not unknown:
                return Opinion(role=role, criterion=criterion.id, vote=vote)
            cause = f"these findings do not exist: {sorted(unknown)}"
        messages.append(HumanMessage(f"Your answer cannot be used: {cause}. Answer again."))
    raise NoOpinion(f"{role} on {criterion.id}: {cause}")
