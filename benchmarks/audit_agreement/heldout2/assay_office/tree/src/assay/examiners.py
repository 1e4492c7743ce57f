"""The three examiners. Each call is independent of all others."""
from __future__ import annotations

import logging
from collections.abc import Sequence

from openai import AsyncOpenAI, OpenAIError
from pydantic import ValidationError

from .forms import Ballot, Role, Sample, Signed

log = logging.getLogger(__name__)

ATTITUDE = {
    Role.PROSECUTOR: "You are paid to keep bad libraries out. Every unexplained gap is a reason to say no. Name the worst "
    "thing that could happen to us in production.",
    Role.DEFENDER: "You are paid to get useful libraries in. Small teams have small histories; judge what the authors were "
    "trying to do and whether a fault can be lived with.",
    Role.TECH_LEAD: "You will be woken at night when it breaks. Neither enthusiasm nor suspicion interests you, only whether "
    "you could find and mend a fault in an hour.",
}
QUESTIONS = {
    "history": "Is the library alive, and made in steps that can be followed?",
    "safety": "Could it hurt us: unsafe calls, unchecked input?",
    "quality": "Is it tested and documented?",
    "paper": "Does its paper explain how it works?",
}
ATTEMPTS = 3


class Mute(RuntimeError):
    """A model that gave no usable ballot."""


async def examine(client: AsyncOpenAI, role: Role, question: str, samples: Sequence[Sample]) -> Signed:
    shown = "\n".join(f"<{s.id}> {s.text}" for s in samples)
    messages = [
        {"role": "system", "content": ATTITUDE[role]},
        {"role": "user", "content": f"{QUESTIONS[question]}\n\nSamples, cite them by id:\n{shown}"},
    ]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            answer = await client.beta.chat.completions.parse(
                model="gpt-4o", messages=messages, response_format=Ballot, temperature=0, timeout=45
            )
            ballot = answer.choices[0].message.parsed
            if ballot is not None:
                return Signed(role, question, ballot)
            log.warning("%s refused on %s (attempt %d)", role, question, attempt)
        except (ValidationError, OpenAIError) as misfit:
            log.warning("%s on %s, attempt %d: %s", role, question, attempt, misfit)
    raise Mute(f"{role} gave no ballot on {question}")
