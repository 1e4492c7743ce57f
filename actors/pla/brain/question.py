"""The brain's question to a model; pure."""

from __future__ import annotations

from typing import Final

from pmagent.actors.pla.brain.answers import Decision, in_pending
from pmagent.actors.pla.brain.model_goal import answer_shape, asked_again
from pmagent.actors.pla.brain.state import Pending
from pmagent.contracts.model import ModelAsked

ACTION: Final = "diagnostic"
"""The action class of the permits for asking a model: it reads, and changes nothing."""


def question(pending: Pending, *, pictured: bool) -> Decision:
    """The question, and all that was said behind it; ``pictured``: with the picture of the frame."""
    asked = pending.asked
    messages = asked_again(asked.goal, pending.seen, pending.more, pictured=pictured)
    return in_pending(
        pending,
        ModelAsked(
            engine="langchain", model=asked.model, action=ACTION, messages=messages, answer=answer_shape(),
            limits=asked.limits,
        ),
    )  # fmt: skip
