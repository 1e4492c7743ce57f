"""Markdown from hostile text: whatever it says, it stays text (CommonMark 0.31; tables of GitHub's Markdown).

Control characters, and those that hide or reorder, are made visible first: C0 as its control picture, others by their
number. Then what means something to Markdown is escaped; the rest stays as it is, for who reads it unrendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from pmagent.events.unseen import UNSEEN

HIDDEN: Final = re.compile(f"[\t\n{UNSEEN}]")
"""Characters that are not seen, or that change how others are seen, on one line."""
_BLANK: Final = re.compile(r"[^\S ]")
"""Blanks of other widths: Markdown reads some of them as blanks."""
_MARKS: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
"""Marks that climb over other lines."""
_MEANING: Final = re.compile(
    r"([`*|~$]"  # anywhere: code, emphasis, cells, mathematics
    r"|\\(?=[!-/:-@\[-`{-~]|$)"  # before what it would escape
    r"|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z_])"  # emphasis: inside of a name it is none
    r"|^\[|\[(?=[\^!])|\](?=[(\[:]|$)"  # links, footnotes, boxes to tick
    r"|<(?=[A-Za-z/!?])|&(?=#?[0-9A-Za-z]+;)"  # HTML, entities
    r"|^#|(?<!\w)#(?=[0-9])|@(?=[0-9A-Za-z])"  # headings, names
    r"|^[-+=>]"  # lists, quotations, and lines under headings
    r"|:(?=//|[A-Za-z+_-]|[0-9]+:)|(?<=[Ww]{3})\.)"  # links that need no brackets, and pictures by name
)
_NUMBERED: Final = re.compile(r"^([0-9]{1,9})([.)])")
"""Where a numbered list would begin."""
_TICKS: Final = re.compile("`+")
_PLAIN: Final = re.compile(r"[^0-9A-Za-z ._,\u00c0-\U0010ffff-]")


def visible(text: str) -> str:
    """The text on one line, with every character to be seen."""
    if text.isascii() and text.isprintable():
        return text
    return _MARKS.sub(r"\1", _BLANK.sub(" ", HIDDEN.sub(_stand_in, text)))


def _stand_in(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"


def cut(text: str, size: int) -> str:
    """At most ``size`` characters of the text; what is left out is shown by ``…``."""
    return text if len(text) <= size else text[: size - 1] + "…"


def inline(text: str, size: int = 500) -> str:
    """The text as part of a paragraph, a heading or a table's cell; of at most ``size`` characters, before escaping."""
    return _inline(cut(text, size))


@lru_cache(maxsize=1024)
def _inline(text: str) -> str:
    """Documents are computed anew with each event that changes them; most of what they tell is as it was."""
    return _NUMBERED.sub(r"\1\\\2", _MEANING.sub(r"\\\1", visible(text).strip()))


def code(text: str, size: int = 500) -> str:
    """The text as code in a paragraph or a table's cell: verbatim but for what is not visible."""
    return _code(cut(text, size))


@lru_cache(maxsize=1024)
def _code(text: str) -> str:
    shown = visible(text).replace("|", "\u2502")  # a bar ends a table's cell, also in code
    if not shown.strip():
        shown = "\u2423" * len(shown)
    if not shown:
        return ""
    fence = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    pad = " " if shown[0] in " `" or shown[-1] in " `" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def fenced(lines: Iterable[str], language: str = "text") -> list[str]:
    """The lines as a block of code, whose fence none of them can close."""
    shown = [visible(line) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown, fence]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; cells are Markdown in one line already (``inline``, ``code``)."""
    return [_row(heads), _row(["---"] * len(heads)), *(_row(row) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def label(text: str, size: int = 60) -> str:
    """The text in quotes, as the label of a node in a Mermaid chart: all but letters, digits and a few harmless marks
    as Mermaid's own entities, which neither it nor Markdown reads as anything else."""
    return '"' + _PLAIN.sub(lambda found: f"#{ord(found[0])};", visible(cut(text, size))) + '"'
