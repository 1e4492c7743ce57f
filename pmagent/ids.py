"""Ids as people see and type them: the beginning of the id's UUID, of 8 characters, longer where two begin alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

SHORT: Final = 8
_UUID: Final = re.compile(r"(?:.*-)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.DOTALL)


def short_id(text: str) -> str:
    """The beginning of the UUID that an id is, or ends with; of another id its first 8 characters."""
    found = _UUID.fullmatch(text)
    return (found[1] if found else text)[:SHORT]


def beginnings(ids: Iterable[str]) -> dict[str, str]:
    """Each id -> its shortest beginning, of 8 characters at least, that no other of these ids has."""
    ordered = sorted(set(ids))
    shared = [_shared(one, other) for one, other in pairwise(ordered)]
    longest = zip(ordered, [0, *shared], [*shared, 0], strict=False)
    return {one: one[: max(SHORT, before + 1, behind + 1)] for one, before, behind in longest}


def _shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def is_meant(asked: str, text: str) -> bool:
    """Whether ``asked`` is the id ``text``, or as much of it, or of its UUID, as is shown."""
    if asked == text or len(asked) < SHORT or _UUID.fullmatch(asked):
        return asked == text
    found = _UUID.fullmatch(text)
    return text.startswith(asked) or (found is not None and found[1].startswith(asked))
