"""Making text harmless for a terminal. Text from agents, files and logs is hostile (docs/design.md §11.3).

A character that could move the cursor, colour, link, copy, reorder or hide is replaced by one that shows that it was
there: C0 by its control picture, everything else by U+FFFD. So nothing is hidden, and nothing runs.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from typing import Any, Final

import msgspec

from pmagent.events.unseen import UNSEEN

_FORBIDDEN: Final = re.compile(f"[\t\n\ud800-\udfff{UNSEEN}]")
"""Surrogates too: bytes that were no text."""
_IN_JSON: Final = re.compile(f"[\ud800-\udfff{UNSEEN}]")
_BLANK: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols of which nothing is drawn: fillers of Hangul, a Braille pattern without dots."""
_COMBINING_MAX: Final = 4
_COMBINING: Final = re.compile(r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{5,}")


def clean_line(text: str) -> str:
    """``text`` on one line: line breaks and tabs are replaced too."""
    if text.isascii() and text.isprintable():
        return text
    return _COMBINING.sub(lambda marks: marks[0][:_COMBINING_MAX], _FORBIDDEN.sub(_stand_in, text))


def clean_block(text: str) -> str:
    """``text`` of several lines: line breaks stay, tabs become blanks, each line is as ``clean_line`` makes it."""
    return "\n".join(clean_line(line.replace("\t", "    ")) for line in text.split("\n"))


def json_bytes(document: Any) -> bytes:
    """``document`` as JSON. A lone surrogate (of a name that is not UTF-8) is no text: its escape stands in its place,
    as in ``escaped``."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(msgspec.to_builtins(document)))


def escaped(text: str) -> str:
    r"""``text`` with its lone surrogates as escapes: the characters ``\udce9``."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {_escaped(key): _escaped(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(inner) for inner in value]
    return value


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def escaped_json(document: bytes) -> bytes:
    """JSON with everything that ``clean_line`` would replace escaped: the same values, harmless for a terminal. A byte
    that is no UTF-8, which is no JSON either, becomes the escape of a lone surrogate."""
    return _IN_JSON.sub(_escape, document.decode("utf-8", "surrogateescape")).encode()


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def width(text: str) -> int:
    """How many columns clean ``text`` takes on a terminal."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def is_seen(text: str) -> bool:
    """Whether anything of ``text`` can be seen: a letter, digit, sign or symbol that is not drawn as a blank."""
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _BLANK for char in text)


def shorten(text: str, columns: int) -> str:
    """Clean ``text`` on one line and at most ``columns`` wide; what is left out is shown by ``…``.

    Text far beyond the limit is not even read.
    """
    if columns <= 0:
        return ""
    text = clean_line(text[: columns * 8 + 8])
    if width(text) <= columns:
        return text
    taken = 0
    for index, char in enumerate(text):
        taken += _columns(char)
        if taken > columns - 1:
            return text[:index] + "…"
    return text


def folded(text: str, columns: int) -> list[str]:
    """Clean ``text`` on lines of at most ``columns``, broken at blanks where it can be; at least one line."""
    lines: list[str] = []
    for line in textwrap.wrap(clean_line(text), columns):
        begin = taken = 0
        for index, char in enumerate(line):
            takes = _columns(char)
            if taken + takes > columns:
                lines.append(line[begin:index])
                begin, taken = index, 0
            taken += takes
        lines.append(line[begin:])
    return lines or [""]


def pad(text: str, columns: int) -> str:
    """``shorten`` and fill up with blanks to exactly ``columns``."""
    short = shorten(text, columns)
    return short + " " * (columns - width(short))
