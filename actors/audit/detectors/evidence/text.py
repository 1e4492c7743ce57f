"""Texts of evidence: cleaned, bounded, and the items themselves; pure.

Detectives bring texts from a repository and a PDF that nobody here wrote. Characters that hide, reorder or command are
replaced by their number, so that what a person sees is what a judge is given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import PATH_CHARS_MAX
from pmagent.contracts.audit_facts import CONTENT_CHARS_MAX, RATIONALE_CHARS_MAX
from pmagent.events.unseen import UNSEEN

GOAL_CHARS_MAX: Final = 500
EXCERPT_CHARS_MAX: Final = 400
"""Longest excerpt of several; a single one may fill the content."""
NOWHERE: Final = "."
"""The location of what was not found: the repository as a whole."""

_HIDDEN: Final = re.compile(f"[{UNSEEN}]")
_BLANKS: Final = re.compile("[\t\n\r ]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MORE_CHARS: Final = 30
"""Room for the line that says how many more there are."""


def clean(text: str, size: int) -> str:
    """The text with every character to be seen, of at most ``size`` characters; ``…`` stands for the rest. Line feeds
    and tabs stay, CR LF becomes LF."""
    shown = _SURROGATE.sub("\ufffd", _HIDDEN.sub(_number, text.replace("\r\n", "\n")))
    return shown if len(shown) <= size else shown[: size - 1] + "…"


def _number(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"


def one_line(text: str, size: int) -> str:
    """``clean``, on one line."""
    return clean(_BLANKS.sub(" ", text).strip(" "), size)


def joined(parts: Sequence[str], total: int | None = None) -> str:
    """As many of the parts as fit into the content of a piece of evidence, each on lines of its own, then how many more
    there are. ``total``: how many there are, where the parts are not all. A part too long for its share is cut."""
    total = max(len(parts) if total is None else total, len(parts))
    share = EXCERPT_CHARS_MAX if len(parts) > 1 else CONTENT_CHARS_MAX - _MORE_CHARS
    room = CONTENT_CHARS_MAX - _MORE_CHARS
    kept: list[str] = []
    for part in parts:
        text = clean(part, share)
        room -= len(text) + 1
        if kept and room < 0:
            break
        kept.append(text)
    told = "\n".join(kept)
    return told if len(kept) == total else f"{told}\nand {total - len(kept)} more"


def counted(number: int, one: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {one if number == 1 else one + 's'}"


def evidence(
    goal: str, content: str | None, location: str, rationale: str, confidence: float, *, found: bool, about: str = ""
) -> Evidence:
    """An item for the goal of this id. ``about``: which of many (a term that a rubric quotes), behind a second colon.
    All texts are cleaned and cut to what the log takes; ``confidence`` is rounded to two places."""
    words = GOALS[goal].text + (f": {about}" if about else "")
    return Evidence(
        goal=one_line(words, GOAL_CHARS_MAX),
        found=found,
        content=clean(content, CONTENT_CHARS_MAX) if content else None,
        location=one_line(location, PATH_CHARS_MAX),
        rationale=one_line(rationale, RATIONALE_CHARS_MAX),
        confidence=round(confidence, 2),
    )
