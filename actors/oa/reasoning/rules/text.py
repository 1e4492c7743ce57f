"""Text of answers: inputs quoted safely, and all of it bounded; pure.

Goals, contexts and tool results are data that somebody else wrote. An answer repeats them cut and printable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pmagent.contracts.reasoning import TEXT_CHARS_MAX

QUOTED_CHARS_MAX = 200
"""So much of an input is repeated in an answer."""

SAID_MAX = 60
"""So many pieces are listed in one text of an answer; the others are counted."""

_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f"
    r"\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def quoted(value: Any, limit: int = QUOTED_CHARS_MAX) -> str:
    """``value`` for an answer: at most ``limit`` characters, all printable; an escape stands for any other. Of a list
    or an object only the size is told."""
    match value:
        case str():
            return bounded(printable(value[: limit + 1]), limit)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(10**18) < value < 10**18 else "a very large number"
        case float():
            return repr(value)
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return f"an object of {len(value)} keys"
    return f"a {type(value).__name__}"


def printable(text: str) -> str:
    """``text`` with white space as blanks, and an escape for each character that cannot be printed (controls, format
    and direction marks, lone surrogates, private use)."""
    return _UNPRINTABLE.sub(lambda found: " " if found[0].isspace() else f"\\u{ord(found[0]):04x}", text)


def is_printable(text: str) -> bool:
    """Whether ``text`` is one line without white space but blanks, and of characters that can be printed. The same to
    every Python: what ``str.isprintable`` takes for one grows with each version of Unicode."""
    return _UNPRINTABLE.search(text) is None


def bounded(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """``text``, cut with "…" where it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(pieces: Iterable[str], separator: str = "; ") -> str:
    """The pieces in one bounded text, each once; those beyond ``SAID_MAX`` are counted."""
    each = list(dict.fromkeys(pieces))
    shown = each[:SAID_MAX]
    if len(each) > SAID_MAX:
        shown.append(f"and {len(each) - SAID_MAX} more")
    return bounded(separator.join(shown))
