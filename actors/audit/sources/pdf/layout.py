"""Paragraphs and headings out of lines, by their look; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.sources.pdf.listing import drawn
from pmagent.actors.audit.sources.pdf.words import clipped
from pmagent.contracts.audit_facts import Heading

LEVELS: Final = 6
HEADING_CHARS: Final = 200
_LARGER: Final = 1.12
"""So many times the size of the running text is a heading's."""
_HYPHENATED: Final = 0.015
"""A report of which fewer lines end with a hyphen breaks no words."""
_LITTLE: Final = 600
"""Text of one size that is longer than this, and than a third of the running text, is no headings."""
_BOLD_CHARS: Final = 90
_RUNNING: Final = 3
"""A heading that stands on so many pages is a running head."""

LISTED_ITEM: Final = re.compile(r"(?:[\u2022\u25aa\u25cf\u25e6\u2023\u2013\u2043*-]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s")
_CLOSED: Final = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")
_PATH_END: Final = re.compile(r"[\w.~-]+[/\\]$")
_PATH_ON: Final = re.compile(r"[/\\][\w.-]|[._][\w-]*\.?\w*|[\w-]+\.(?:py|ipynb|md|json|ya?ml|toml|txt|ts|js|sh)\b")
_EXTENDED: Final = re.compile(r"\.[A-Za-z]{1,5}$")
_LEADERS: Final = re.compile(r"(?:[.\u2026_\u00b7]\s?){5,}\s*[\divx]*\s*$")
"""A line of a table of contents."""
_TITLED: Final = re.compile(r"\d{1,2}(?:\.\d{1,2})+\.?\s+[A-Z][\w-]*(?:\s+[\w&/,-]+){0,7}$")
"""A numbered heading that looks like running text."""
_CAPITALS: Final = re.compile(r"(?=.*[A-Z]{6})(?:\d{1,2}\.?\s+)?[A-Z][A-Z&/-]*(?:\s+[A-Z&/-]+){0,6}$")
_NUMBERS: Final = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s")
_NUMBERED: Final = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.|[IVX]+\.)\s+\S")
_TAIL: Final = 300
"""So much of a text is looked at to see how it goes on."""
_WRAPPED: Final = re.compile(r"[^\W\d_]-$")


class Line(NamedTuple):
    """A line of text. ``size`` and ``bold`` of most of it; ``codes``: parts in a font for code, as (start, end);
    ``block`` counts the page's blocks; the rest is where it stands, in points from the page's upper left. ``soft``: it
    ends with a soft hyphen, which is not in ``text``."""

    text: str
    page: int
    block: int
    size: float
    bold: bool
    codes: tuple[tuple[int, int], ...]
    x0: float
    y0: float
    x1: float
    y1: float
    soft: bool = False

    @property
    def code(self) -> bool:
        """Whether all of it is code."""
        return len(self.codes) == 1 and self.codes[0] == (0, len(self.text))


class Paragraph(NamedTuple):
    """A passage of running text, or a heading (``level`` from 1; 0: it is none). ``codes``: parts in a font for code,
    as (start, end). ``heading``: what it stands under, "" for none; ``above``: the headings above that one, from the
    outermost, without the report's title."""

    text: str
    page: int
    level: int
    codes: tuple[tuple[int, int], ...]
    heading: str
    above: tuple[str, ...] = ()

    @property
    def code(self) -> bool:
        """Whether all of it is code."""
        return len(self.codes) == 1 and self.codes[0] == (0, len(self.text))


class Look(NamedTuple):
    """The look of a report's running text and of its headings: ``sizes`` of these from the largest, the texts of
    running heads, and whether words are broken at the ends of lines, so that a hyphen there is none of the word's."""

    body: float
    bold: bool
    sizes: tuple[float, ...]
    running: frozenset[str]
    hyphenates: bool

    def level(self, line: Line) -> int:
        """The level of the heading that the line is, 0 if it is none."""
        text = line.text
        if not line.size or len(text) > HEADING_CHARS or line.code or not re.search(r"[^\W\d_]{2}", text):
            return 0
        if text in self.running or (LISTED_ITEM.match(text) and not re.match(r"\d", text)):
            return 0
        if line.size in self.sizes:
            return min(self.sizes.index(line.size) + 1, LEVELS)
        if len(text) > _BOLD_CHARS or line.size < self.body or _CLOSED.search(text):
            return 0
        if (line.bold and not self.bold) or _TITLED.match(text) or _CAPITALS.match(text):
            return min(len(self.sizes) + 1, LEVELS)
        return 0


def look(every: Sequence[Line]) -> Look:
    """The look of the report that has these lines."""
    sizes, bold = Counter[float](), 0
    for line in [line for line in every if not line.code] or every:
        sizes[line.size] += len(line.text)
        bold += len(line.text) if line.bold else 0
    body = max(sizes, key=lambda size: (sizes[size], -size)) if sizes else 0.0
    rare = {size for size, count in sizes.items() if count <= max(sizes[body] / 3, _LITTLE)}
    larger = sorted((size for size in rare if body and size >= body * _LARGER), reverse=True)
    seen: dict[str, set[int]] = {}
    for line in every:
        if line.size > body or line.bold:
            seen.setdefault(line.text, set()).add(line.page)
    running = frozenset(text for text, pages in seen.items() if len(pages) >= _RUNNING)
    broken = sum(bool(_WRAPPED.search(line.text)) for line in every)
    hyphenates = broken >= len(every) * _HYPHENATED
    return Look(body, bold * 10 > sum(sizes.values()) * 3, tuple(larger), running, hyphenates)


def paragraphs(every: Iterable[Line], seen: Look) -> list[Paragraph]:
    """The lines, joined to paragraphs in their order, without those of tables of contents; none spans
    pages."""
    found: list[Paragraph] = []
    gathered: list[Line] = []
    place = _Place()

    def close() -> None:
        if gathered:
            text, codes = _joined(gathered, seen.hyphenates)
            level = seen.level(gathered[0])
            found.append(Paragraph(text, gathered[0].page, level, codes, place.heading, place.above))
            if level:
                place.enter(text, level)
            gathered.clear()

    for line in every:
        if _LEADERS.search(line.text):
            continue
        if gathered and _parts(gathered[-1], line, seen):
            close()
        gathered.append(line)
    close()
    return found


class _Place:
    """Where in a report one is: under which headings."""

    def __init__(self) -> None:
        self._entered: list[tuple[tuple[int, int], str]] = []
        self._title = ""

    def enter(self, heading: str, level: int) -> None:
        """Go on under a heading. Those of one look are told apart by their numbers: 7.1 stands under 7."""
        numbers = _NUMBERS.match(heading)
        depth = (level, numbers.group().rstrip(". ").count(".") + 1 if numbers else 0)
        self._entered = [entered for entered in self._entered if entered[0] < depth]
        self._entered.append((depth, heading))
        self._title = self._title or heading

    @property
    def heading(self) -> str:
        return self._entered[-1][1] if self._entered else ""

    @property
    def above(self) -> tuple[str, ...]:
        return tuple(heading for _, heading in self._entered[:-1] if heading != self._title)


def headings(every: Iterable[Paragraph]) -> list[Heading]:
    """The headings among paragraphs."""
    return [
        Heading(text=clipped(each.text, HEADING_CHARS), page=each.page, level=each.level)
        for each in every
        if each.level
    ]


def _parts(last: Line, line: Line, seen: Look) -> bool:
    """Whether a paragraph ends between two lines."""
    if line.page != last.page:
        return True
    if drawn(line.text):
        return line.y0 - last.y1 > 1.5 * (line.size or 1.0)
    level = seen.level(line)
    if level != seen.level(last):
        return True
    size = line.size or 1.0
    gap = line.y0 - last.y1
    if abs(line.y0 - last.y0) < size / 2 and line.x0 >= last.x1 - 1:  # on one line
        return line.block != last.block and line.x0 - last.x1 > 4 * size
    if line.block == last.block:
        return bool(LISTED_ITEM.match(line.text)) or gap > 0.9 * size
    if level:
        in_line = abs(line.x0 - last.x0) < size or abs(line.x0 + line.x1 - last.x0 - last.x1) < size
        return abs(gap) > 0.5 * size or not in_line or bool(_NUMBERED.match(line.text))
    joins = -0.5 * size < gap < 0.6 * size and abs(line.x0 - last.x0) < 1.5 * size and line.size == last.size
    if line.code and last.code:
        return not joins
    return not joins or bool(_CLOSED.search(last.text)) or bool(LISTED_ITEM.match(line.text))


def _joined(gathered: Sequence[Line], hyphenates: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
    """One text out of lines, and where it is code."""
    text, codes = "", list[tuple[int, int]]()
    last: Line | None = None
    for line in gathered:
        if last is not None:
            text, between = _bound(text, last, line, hyphenates)
            text += between
        joins = bool(codes) and codes[-1][1] >= len(text.rstrip())
        start = len(text)
        for place, (begin, end) in enumerate(line.codes):
            if place == 0 and begin == 0 and joins:
                codes[-1] = (codes[-1][0], start + end)
            else:
                codes.append((start + begin, start + end))
        text += line.text
        last = line
    return text, tuple((begin, min(end, len(text))) for begin, end in codes)


def _bound(text: str, last: Line, line: Line, hyphenates: bool) -> tuple[str, str]:
    """``text`` up to the end of ``last`` as it stands before ``line``, and what goes between."""
    if (last.code and line.code) or drawn(line.text):
        return text, "\n"
    begins, tail = line.text[:1], text[-_TAIL:]
    in_code = bool(last.codes) and last.codes[-1][1] == len(last.text) and bool(line.codes) and line.codes[0][0] == 0
    if last.soft:
        return text, ""
    if _WRAPPED.search(tail) and begins.isalpha():
        keeps = in_code or not hyphenates or not begins.islower() or _PATH_END.search(tail)
        return text if keeps else text[:-1], ""
    if _path_goes_on(tail, line.text, in_code):
        return text, ""
    return text, " "


def _path_goes_on(text: str, following: str, in_code: bool) -> bool:
    """Whether a path was broken between the end of ``text`` and ``following``."""
    token = text.rsplit(None, 1)[-1]
    if _PATH_END.search(token):
        return bool(re.match(r"[\w.]", following)) and (
            in_code or bool(_PATH_ON.match(following)) or "/" in following.split(None, 1)[0]
        )
    if ("/" not in token and "\\" not in token) or _EXTENDED.search(token):
        return False
    if re.match(r"[/\\._][\w]", following):
        return True
    return in_code and token[-1:].isalnum() and bool(_PATH_ON.match(following))
