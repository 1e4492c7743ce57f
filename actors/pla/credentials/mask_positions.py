"""Where in a text the redactor has put its masks, and putting masks there; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

Place = tuple[int, int]

_WORD: Final = re.compile(r"[A-Za-z0-9+/=_.~-]+", re.ASCII)
"""Characters that may continue a secret: nothing of a word that holds one is shown."""


def mask_positions(text: str, redacted: str, mask: str) -> list[Place] | None:
    """Where ``redacted`` has masks instead of what stands in ``text``; None where it may be here or there, as when what
    stands between two masks stands in what they hide as well."""
    parts = redacted.split(mask)
    if len(parts) < 2 or not (text.startswith(parts[0]) and text.endswith(parts[-1])):
        return None
    first, last = _leftmost(text, parts), _rightmost(text, parts)
    if first is None or first != last:
        return None
    ends = [at + len(part) for at, part in zip(first, parts, strict=True)]
    gaps = list(zip(ends[:-1], first[1:], strict=True))
    return gaps if all(start < end for start, end in gaps) else None


def put(mask: str, places: Iterable[Place], text: str) -> str:
    """``text`` with ``mask`` instead of each place and the rest of the words that it stands in."""
    words = [match.span() for match in _WORD.finditer(text)]
    parts: list[str] = []
    at = 0
    for start, end in _joined([*places], words):
        parts += text[at:start], mask
        at = end
    return "".join((*parts, text[at:]))


def _joined(places: list[Place], words: Sequence[Place]) -> list[Place]:
    """``places``, each with the words that it touches; those that overlap or touch become one."""
    touched = [word for word in words if any(word[0] < end and start < word[1] for start, end in places)]
    joined: list[Place] = []
    for start, end in sorted([*places, *touched]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _leftmost(text: str, parts: Sequence[str]) -> list[int] | None:
    """Where each of ``parts`` begins when every one stands as far to the left as it can."""
    places, at = [0], len(parts[0])
    for part in parts[1:-1]:
        found = text.find(part, at + 1)
        if found < 0:
            return None
        places.append(found)
        at = found + len(part)
    return [*places, len(text) - len(parts[-1])]


def _rightmost(text: str, parts: Sequence[str]) -> list[int] | None:
    """The same, as far to the right."""
    at = len(text) - len(parts[-1])
    places = [at]
    for part in parts[-2:0:-1]:
        found = text.rfind(part, 0, at - 1)
        if found < 0:
            return None
        places.append(found)
        at = found
    return [0, *reversed(places)]
