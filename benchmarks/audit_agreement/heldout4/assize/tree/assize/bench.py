"""The judges. Each has a creed of its own and sees only exhibits."""

import os
import sys

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai import OpenAIError
from pydantic import ValidationError

from .state import Finding, Hearing, Opinion

CREEDS = {
    "prosecutor": "You prosecute. Nothing is true until an exhibit shows it. Assume haste and borrowed code; an ability "
                  "without an exhibit is an absent ability. Start from 1 and let the exhibits raise you.",
    "defender": "You defend. Somebody sat over this for nights. Look for what was meant, for the idea behind a clumsy "
                "line, for progress between commits. Start from 5 and let only exhibits lower you.",
    "engineer": "You will have to operate this on Monday. Intentions do not matter to you, neither do style and effort: "
                "only whether it runs, survives bad input and can be changed by somebody else. Start from 3.",
}
TRIES = 3


def model():
    llm = ChatOpenAI(model=os.environ.get("ASSIZE_MODEL", "gpt-4o-mini"), temperature=0.2, timeout=60, max_tokens=600)
    return llm.with_structured_output(Finding)


def hear(hearing: Hearing) -> dict:
    """One judge on one criterion. An answer that does not fit is asked for again, and then counts as no opinion."""
    criterion, exhibits = hearing["criterion"], hearing["exhibits"]
    shown = "\n".join(f"{one.number}: {one.says} [{one.place}]" for one in exhibits) or "There is no exhibit."
    messages = [SystemMessage(CREEDS[hearing["judge"]]),
                HumanMessage(f"{criterion.title}: {criterion.asks}\n\nExhibits:\n{shown}\n\nCite by number.")]
    known = {one.number for one in exhibits}
    bound = model()
    for _ in range(TRIES):
        try:
            finding = bound.invoke(messages)
        except (ValidationError, OutputParserException) as wrong:
            messages.append(HumanMessage(f"That did not fit the form: {wrong}"))
            continue
        except OpenAIError as error:  # the client has tried again by itself
            print(f"assize: {hearing['judge']} on {criterion.id}: {error}", file=sys.stderr)
            break
        if finding is None or not set(finding.cites) <= known:
            messages.append(HumanMessage("Fill in the form and cite only exhibits from the list."))
            continue
        return {"opinions": [Opinion(judge=hearing["judge"], criterion=criterion.id, finding=finding)]}
    return {"opinions": []}
