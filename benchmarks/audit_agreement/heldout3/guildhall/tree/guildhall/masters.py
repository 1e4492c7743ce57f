"""The three masters."""
from __future__ import annotations

from functools import cache
from typing import TypedDict

from langchain_anthropic import ChatAnthropic
from pydantic import ValidationError

from .state import TOPICS, Ballot, Exhibit, Master, Vote

OATHS: dict[Master, str] = {
    "accuser": "I swear to let no sham into the guild. I presume fraud: names without substance, tests that cannot "
               "fail, words copied from a book. The burden of proof is on the applicant.",
    "patron": "I swear that no talent goes unseen. I presume good faith: a clumsy hand may hold a fine idea, and half "
              "a bridge shows that somebody knew where the other bank is.",
    "craftsman": "I swear to look at the joint and not at the varnish. I ask who has to mend it, what happens when the "
                 "net is down, and whether I would put my own tools away beside it.",
}


class Seat(TypedDict):
    master: Master
    topic: str
    exhibits: list[Exhibit]


@cache
def voting(tries: int = 2):
    model = ChatAnthropic(model="claude-sonnet-4-5", temperature=0, max_tokens=700, timeout=60)
    bound = model.with_structured_output(Vote)
    return bound.with_retry(retry_if_exception_type=(ValidationError,), stop_after_attempt=tries)


async def vote(seat: Seat) -> dict:
    shown = "\n".join(f"{e.number}: {e.says} [{e.where}] {'holds' if e.holds else 'does not hold'}"
                      for e in seat["exhibits"] if e.topic == seat["topic"])
    try:
        answer = await voting().ainvoke([
            ("system", OATHS[seat["master"]]),
            ("human", f"{TOPICS[seat['topic']]}\nGive 1 to 5.\n\n<exhibits>\n{shown}\n</exhibits>"),
        ])
    except ValidationError as error:
        return {"complaints": [f"{seat['master']} on {seat['topic']}: no valid vote ({error.error_count()} faults)"]}
    if answer is None:
        return {"complaints": [f"{seat['master']} on {seat['topic']}: no vote"]}
    return {"ballots": [Ballot(master=seat["master"], topic=seat["topic"], vote=answer)]}
