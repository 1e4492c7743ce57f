"""A goal and its reason as they may be recorded; pure (docs/design.md §16.5).

A secret that is stated to be typed stands in the goal as well, and perhaps in the words that explain it, where no
detector would know it for one.
"""

from __future__ import annotations

import re
from typing import Final

from pmagent.actors.pla.credentials.findings import Redact, masked
from pmagent.actors.pla.goals import GoalError, parse_goal
from pmagent.contracts.pla import TypeText
from pmagent.events.secret_forms import MASK

_LETTERS: Final = re.compile("[A-Za-z0-9]+")

REPEATED_CHARS_MIN: Final = 4
"""Shorter words of a secret text are words of any text."""


def masked_goal(goal: str, redact: Redact) -> str:
    """``masked`` for a goal: what it states to be typed is looked at by itself, without the word before it."""
    try:
        action = parse_goal(goal)
    except GoalError:
        return MASK if masked(goal, redact) != goal else goal
    if action is None:
        return masked(goal, redact)
    if isinstance(action, TypeText):
        shown = masked(action.text, redact)
        if shown != action.text:
            return f"type: {shown}"
    return redact(goal)


def masked_reason(text: str, plain: str, shown: str, redact: Redact) -> str:
    """``masked`` for a text that goes with ``plain``, of which only ``shown`` may be recorded: all of it where it
    repeats a word of what is hidden."""
    hidden = _words(plain) - _words(shown)
    if any(word in text for word in hidden):
        return MASK
    return masked(text, redact)


def _words(text: str) -> set[str]:
    """The words between blanks, and their letters and digits."""
    found = {*text.split(), *_LETTERS.findall(text)}
    return {word for word in found if len(word) >= REPEATED_CHARS_MIN}
