"""The lines of a PDF's pages, with what their look tells; runs in the reading process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pmagent.actors.audit.lists import Lists
from pmagent.actors.audit.sources.pdf.layout import Line
from pmagent.actors.audit.sources.pdf.listing import drawn
from pmagent.actors.audit.sources.pdf.opening import mupdf
from pmagent.actors.audit.sources.pdf.sight import Sight
from pmagent.actors.audit.sources.pdf.underscores import Underscores
from pmagent.actors.audit.sources.pdf.words import clean

_LISTS: Final = Lists(__package__, "lines")

LINES_MAX: Final = 5_000
"""So many lines of a page are read."""

_FLAGS: Final = mupdf.TEXTFLAGS_DICT & ~mupdf.TEXT_PRESERVE_IMAGES & ~mupdf.TEXT_PRESERVE_LIGATURES
_MONO: Final = _LISTS.pattern("mono")
_BOLD: Final = re.compile(r"bold|black|heavy|semibold|demi", re.IGNORECASE)
_MONO_FLAG: Final = 8
_BOLD_FLAG: Final = 16


def lines(page: Any, number: int) -> tuple[list[Line], int]:
    """The lines of a page of PyMuPDF's, in the order in which the file has them; and how many characters of it cannot
    be seen, and are left out."""
    found: list[Line] = []
    sight, underscores, hidden = Sight(page), Underscores(page), 0
    for count, block in enumerate(page.get_text("dict", flags=_FLAGS)["blocks"]):
        for line in block.get("lines", ())[: LINES_MAX - len(found)]:
            spans = [span for span in line["spans"] if not span["text"].strip() or sight.sees(span)]
            hidden += sum(len(span["text"]) for span in line["spans"]) - sum(len(span["text"]) for span in spans)
            made = _line(underscores.put_into(spans), line["bbox"], number, count)
            if made is not None:
                found.append(made)
    if not found and not hidden:  # MuPDF loses its way on pages as large as a town
        found = plain(page.get_text("text"), number)
    return found, hidden


def plain(text: str, number: int) -> list[Line]:
    """Lines of text that has no look: what was recognised on an image."""
    found: list[Line] = []
    for block, paragraph in enumerate(re.split(r"\n\s*\n", clean(text))):
        for row, line in enumerate(paragraph.split("\n")):
            if len(found) == LINES_MAX:
                return found
            if line.strip():
                found.append(Line(
                    line.strip(), number, block, size=0.0, bold=False, codes=(), x0=0.0, y0=row, x1=0.0, y1=row + 1.0,
                ))
    return found


def _line(spans: Sequence[Any], area: Sequence[float], number: int, block: int) -> Line | None:
    text, codes = "", list[tuple[int, int]]()
    sizes, bold, soft = dict[float, int](), 0, False
    aligned = drawn("".join(span["text"] for span in spans))
    for span in spans:
        piece = clean(span["text"], aligned=aligned)
        if not aligned and (text.endswith(" ") or not text):
            piece = piece.lstrip(" ")
        soft = span["text"].rstrip().endswith("\u00ad")
        if not piece:
            continue
        start, end = len(text), len(text) + len(piece.rstrip())
        if (span["flags"] & _MONO_FLAG or _MONO.search(span["font"])) and end > start:
            joined = bool(codes) and not text[codes[-1][1] : start].strip()
            codes[-1:] = [(codes[-1][0], end)] if joined else [*codes[-1:], (start, end)]
        size = round(span["size"] * 2) / 2
        sizes[size] = sizes.get(size, 0) + len(piece)
        bold += len(piece) if span["flags"] & _BOLD_FLAG or _BOLD.search(span["font"]) else 0
        text += piece
    text = text.rstrip().replace("\n", " ")
    if not text:
        return None
    size = max(sizes, key=lambda each: (sizes[each], each))
    x0, y0, x1, y1 = area
    heavy = bold * 2 > sum(sizes.values())
    return Line(text, number, block, size, heavy, tuple(codes), x0, y0, x1, y1, soft)
