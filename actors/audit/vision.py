"""A vision model's words on an image, from its reply; pure."""

from __future__ import annotations

from typing import Final

from pmagent.contracts.model import ModelReplied

SEEN_CHARS_MAX: Final = 4_000
"""So much of what a vision model says is kept."""
SILENT: Final = " "
"""Stands for an answer without a word, or a refusal: somebody was asked, and nobody has seen anything."""
_BLANK: Final = " \t\r\n"


def seen_in(reply: ModelReplied) -> str:
    """The model's words for what it saw; ``SILENT`` where there are none."""
    if reply.finish == "refusal":
        return SILENT
    return reply.content.strip(_BLANK)[:SEEN_CHARS_MAX] or SILENT
