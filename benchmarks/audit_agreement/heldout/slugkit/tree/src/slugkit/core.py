from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from slugkit.rules import RULES

_GAP = re.compile(r"[^a-z0-9]+")


class SlugError(ValueError):
    """A title that leaves no slug."""


def slugify(title: str, *, language: str = "en", limit: int | None = None, separator: str = "-") -> str:
    """The slug of a title.

    ``limit`` is a number of characters; a slug is cut between words where that is possible.
    Raises SlugError if nothing is left, and LookupError for a language without rules.
    """
    if limit is not None and limit < 1:
        raise ValueError("limit must be at least 1")
    if language not in RULES:
        raise LookupError(f"no rules for language {language!r}; there are {', '.join(sorted(RULES))}")
    for rule in RULES[language]:
        title = rule(title)
    flat = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = _GAP.sub(separator, flat).strip(separator)
    if not slug:
        raise SlugError(f"{title!r} leaves no slug")
    return slug if limit is None else _cut(slug, limit, separator)


def _cut(slug: str, limit: int, separator: str) -> str:
    if len(slug) <= limit:
        return slug
    head, _, _ = slug[: limit + 1].rpartition(separator)
    return head or slug[:limit]


class Slugger:
    """Slugs that differ from each other."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def unique(self, title: str, **options: str) -> str:
        """A slug that this slugger has not given yet: a number is appended from 2 on."""
        slug = base = slugify(title, **options)  # type: ignore[arg-type]
        number = 2
        while slug in self._taken:
            slug = f"{base}-{number}"
            number += 1
        self._taken.add(slug)
        return slug
