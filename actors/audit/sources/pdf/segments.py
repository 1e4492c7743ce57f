"""Cuts the text of a report into segments that can be searched (docs/design.md §15.5); pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pmagent.actors.audit.sources.pdf.wire import ChunkBy, Segment

CHUNK_CHARS: Final = 1_500
OVERLAP_CHARS: Final = 100
_LATE: Final = 0.6
"""A chunk ends at a paragraph's or sentence's end that lies behind this share of it."""


def segments(pages: Iterable[tuple[int, str]], chunk_by: ChunkBy) -> list[Segment]:
    """The text of ``pages`` (number from 1, text) in segments: each page whole, or chunks of at most ``CHUNK_CHARS``
    characters, of which neighbours on a page share up to ``OVERLAP_CHARS``. No segment is blank or spans pages."""
    if chunk_by == "page":
        return [Segment(text=text.strip(), page_no=number) for number, text in pages if text.strip()]
    return [Segment(text=chunk, page_no=number) for number, text in pages for chunk in chunks(text)]


def chunks(text: str) -> Iterator[str]:
    """``text`` in chunks, each a part of it as it stands, cut between words where a word is not longer than a chunk."""
    text = text.strip()
    start = 0
    while len(text) - start > CHUNK_CHARS:
        end = _end(text, start)
        yield text[start:end].rstrip()
        start = _next(text, start, end)
    if start < len(text):
        yield text[start:]


def _end(text: str, start: int) -> int:
    """Where a chunk from ``start`` ends: behind a paragraph, else a sentence, else a word, else anywhere."""
    limit = start + CHUNK_CHARS
    late = start + int(CHUNK_CHARS * _LATE)
    for mark, behind in (("\n\n", 0), (". ", 1), ("\n", 0)):
        found = text.rfind(mark, late, limit)
        if found > 0:
            return found + behind
    if text[limit].isspace():
        return limit
    for place in range(limit - 1, start, -1):
        if text[place].isspace():
            return place
    return limit


def _next(text: str, start: int, end: int) -> int:
    """Where the chunk after that of ``start`` to ``end`` begins: at a word, up to the overlap before ``end``."""
    for place in range(max(end - OVERLAP_CHARS, start + 1), end):
        if text[place - 1].isspace() and not text[place].isspace():
            return place
    while end < len(text) and text[end].isspace():
        end += 1
    return end
