"""Views of content in which a secret is contiguous though other characters are interspersed.

A view is the text without something: zeros (UTF-16, UTF-32), escape sequences of terminals, line breaks, separators
between bytes in hex. A finding in a view is masked in the text, from its first character to its last.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple

Span = tuple[int, int]


class View(NamedTuple):
    """``pattern`` finds what is left out; ``within`` the places in which it is looked for (None: everywhere).
    ``has`` says cheaply whether there can be anything to leave out."""

    pattern: re.Pattern[str]
    has: Callable[[str], bool]
    within: re.Pattern[str] | None = None

    def of(self, text: str) -> str | None:
        """The text seen in this way; None when it is no other."""
        if not self.has(text):
            return None
        if self.within is None:
            seen = self.pattern.sub("", text)
        else:
            seen = self.within.sub(lambda place: self.pattern.sub("", place[0]), text)
        return seen if len(seen) < len(text) else None

    def position_map(self, text: str) -> PositionMap:
        """Maps positions in the view to positions in ``text``."""
        return PositionMap([(start, end) for start, end in self._left_out(text) if end > start])

    def _left_out(self, text: str) -> Iterator[Span]:
        if self.within is None:
            for match in self.pattern.finditer(text):
                yield match.span()
            return
        for place in self.within.finditer(text):
            for match in self.pattern.finditer(place[0]):
                yield place.start() + match.start(), place.start() + match.end()


class PositionMap:
    """Maps positions in a view to those in the text; ``left_out`` are the spans that the view omits."""

    def __init__(self, left_out: list[Span]) -> None:
        self._lost = list(accumulate((end - start for start, end in left_out), initial=0))
        self._at = [start - lost for (start, _), lost in zip(left_out, self._lost, strict=False)]

    def __call__(self, start: int, end: int) -> Span:
        """Where the text has what stands from ``start`` to ``end`` in the view, from its first character to its
        last."""
        return self._position(start), self._position(end - 1) + 1

    def _position(self, position: int) -> int:
        return position + self._lost[bisect_right(self._at, position)]


_ZERO_WIDTH: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_UNITS: Final = r"(?:[^\0]\0){4,}|(?:[^\0]\0\0\0){4,}"
_ESCAPES: Final = (
    r"(?:\x1b\[|\x9b)[0-?]{0,100}[ -/]{0,10}[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]{0,10}[0-Z\\^-~]"
    rf"|[{_ZERO_WIDTH}]"
)


def has_unseen(text: str) -> bool:
    """Whether ``text`` may hold what is not shown; cheap where it does not."""
    if "\0" in text or "\x1b" in text:
        return True
    return not text.isascii() and any(mark in text for mark in ("\x9b", *_ZERO_WIDTH))


SHOWN: Final = View(re.compile(rf"\0+|{_ESCAPES}"), has_unseen, re.compile(f"{_UNITS}|{_ESCAPES}"))
"""Text as a terminal or an editor shows it: without escape sequences, without characters of no width, and without the
zeros of UTF-16 and UTF-32 (of ASCII, in any order of bytes)."""

JOINED_LINES: Final = View(
    re.compile(r"(?:[\r\n]+|\\[rn])[ \t]*"), lambda text: "\n" in text or "\r" in text or "\\n" in text
)
"""Lines as one, also where the breaks are escaped and the lines indented: how base64 is wrapped."""

_BYTE: Final = "[0-9A-Fa-f]{2}"
_BETWEEN: Final = r"(?:[\s:,;%_-]|0x|\\x|\\){1,100}"

JOINED_HEX: Final = View(
    re.compile(_BETWEEN), lambda _: True,
    re.compile(rf"{_BYTE}(?<![0-9A-Fa-f]{{4}})(?:{_BYTE})*{_BETWEEN}(?:(?:{_BYTE})+{_BETWEEN})+(?:{_BYTE})+"),
)
"""Hex without what separates its bytes, or groups of them."""
