"""Text of several lines in which nothing hides: for JSON, and lines of the log as they are stored."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

from pmagent.events.unseen import UNSEEN

_COMBINING: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_HIDING: Final = re.compile(f"[\ud800-\udfff{UNSEEN}]|(?<=[{_COMBINING}]{{4}})[{_COMBINING}]+")
"""What is not seen, reorders, or is obeyed; and what a letter is heaped with beyond four marks."""
_MARK: Final = Markup('<span class="mark" title="{0}">{0}</span>')


def marked(text: str) -> Markup:
    """``text`` with each character that is not seen as a mark with its number. Blanks, tabs and line breaks stay as
    they are."""
    parts: list[Markup] = []
    end = 0
    for found in _HIDING.finditer(text):
        name = f"U+{ord(found[0][0]):04X}" + (f" x{len(found[0])}" if len(found[0]) > 1 else "")
        parts += [escape(text[end : found.start()]), _MARK.format(name)]
        end = found.end()
    parts.append(escape(text[end:]))
    return Markup("").join(parts)


def decoded(raw: bytes) -> str:
    r"""Bytes as text; what is no UTF-8 as ``\\xNN``."""
    return raw.decode("utf-8", "backslashreplace")
