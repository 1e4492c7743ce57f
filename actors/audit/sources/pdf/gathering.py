"""Gathers a report's text page by page, and answers the questions from it; runs in the reading process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.audit.sources.pdf.index import DocStore
from pmagent.actors.audit.sources.pdf.layout import Line, Paragraph, headings, look, paragraphs
from pmagent.actors.audit.sources.pdf.lines import lines
from pmagent.actors.audit.sources.pdf.opening import attempted, broken_down, damaged, open_pdf, page_of, ran_into_errors
from pmagent.actors.audit.sources.pdf.passages import excerpts
from pmagent.actors.audit.sources.pdf.paths import claims
from pmagent.actors.audit.sources.pdf.recognition import Recognition, image_only
from pmagent.actors.audit.sources.pdf.segments import segments
from pmagent.actors.audit.sources.pdf.statements import statements
from pmagent.actors.audit.sources.pdf.tables import Tables
from pmagent.actors.audit.sources.pdf.wire import Read, Segmented, Task
from pmagent.actors.audit.sources.pdf.words import clean, clipped
from pmagent.contracts.audit_facts import Heading, PdfReading

HEADINGS_MAX: Final = 500
TITLE_CHARS: Final = 200
TEXT_CHARS: Final = 15_000_000
"""So many characters of a report are read."""
_OUTLINE_MAX: Final = 2_000
_PLACEHOLDERS: Final = frozenset(("untitled", "title", "document", "microsoft word", "(anonymous)", "(unspecified)"))


class Gathered(msgspec.Struct, frozen=True):
    """A report's text: ``every`` line of it, and how it was had."""

    every: list[Line]
    pages: int
    text_pages: int
    ocr_pages: int
    tables: int
    title: str
    outline: list[Heading]
    notes: list[str]


def read(task: Task) -> Read:
    """The facts of the report. Raises Unreadable, or MemoryError."""
    gathered = _gathered(task, tables=True)
    passages = paragraphs(gathered.every, look(gathered.every))
    cut = segments(_texts(passages), "char")
    found = headings(passages)
    with DocStore(cut) as store:
        answers = excerpts(task.questions, passages, store)
    said, telling = statements(passages)
    reading = PdfReading(
        sha256=task.sha256, title=gathered.title or _largest(passages), pages=gathered.pages,
        text_pages=gathered.text_pages, ocr_pages=gathered.ocr_pages,
        characters=sum(len(line.text) for line in gathered.every), segments=len(cut), tables=gathered.tables,
        headings=(gathered.outline or found)[:HEADINGS_MAX], claims=claims(passages), statements=said, excerpts=answers,
        notes=gathered.notes, sentences=telling,
    )
    return Read(reading)


def cut(task: Task) -> Segmented:
    """The report in segments. Raises Unreadable, or MemoryError."""
    gathered = _gathered(task, tables=False)
    passages = paragraphs(gathered.every, look(gathered.every))
    found = segments(_texts(passages), task.chunk_by)
    return Segmented(gathered.title or _largest(passages), gathered.pages, found, gathered.notes)


def _gathered(task: Task, *, tables: bool) -> Gathered:
    document = open_pdf(task.pdf, task.pages)
    notes = ["the PDF is damaged; what could be mended was read"] if document.is_repaired else []
    counted = Tables() if tables else None
    recognition = Recognition(task.tesseract, task.seconds)
    every: list[Line] = []
    characters = text_pages = unread = broken = left_out = hidden = 0
    ran_into_errors()
    for index in range(document.page_count):
        if characters > TEXT_CHARS:
            left_out += 1
            continue
        page = page_of(document, index + 1, task.skip)
        seen = _lines(page, index + 1)
        if page is None or seen is None:
            unread += 1
            continue
        found, unseen = seen
        hidden += unseen
        size = sum(len(line.text) for line in found)
        if image_only(page, size):
            found = recognition.read(page, index + 1) or found
        elif size:
            text_pages += 1
        if counted is not None:
            counted.look(page)
        broken += ran_into_errors() and not found
        every += found
        characters += sum(len(line.text) for line in found)
    if unread == document.page_count:
        damaged()
    for count, what in (
        (unread - len(task.skip), "pages that could not be read"),
        (broken, "pages on which nothing could be read, because of errors in them"),
        (left_out, f"pages left out, because the text is longer than {TEXT_CHARS:,} characters"),
        (hidden, "characters left out, because they cannot be seen on their page"),
    ):
        notes += [f"{what}: {count:,}"] if count > 0 else []
    notes += broken_down(task.skip)
    notes += recognition.notes
    notes += counted.notes if counted is not None else []
    return Gathered(
        every=every, pages=document.page_count, text_pages=text_pages, ocr_pages=recognition.pages,
        tables=counted.count if counted is not None else 0, title=_title(document), outline=_outline(document),
        notes=notes,
    )


def _lines(page: Any | None, number: int) -> tuple[list[Line], int] | None:
    return None if page is None else attempted(lambda: lines(page, number))


def _texts(passages: Sequence[Paragraph]) -> Iterator[tuple[int, str]]:
    """The number and the text of each page that has any."""
    page, gathered = 0, list[str]()
    for passage in passages:
        if passage.page != page and gathered:
            yield page, "\n\n".join(gathered)
            gathered = []
        page = passage.page
        gathered.append(passage.text)
    if gathered:
        yield page, "\n\n".join(gathered)


def _title(document: Any) -> str:
    """The title that the PDF has for itself, unless it is a program's."""
    found = clean(str((attempted(lambda: document.metadata) or {}).get("title") or "")).replace("\n", " ").strip()
    return "" if found.lower() in _PLACEHOLDERS else clipped(found, TITLE_CHARS)


def _largest(passages: Sequence[Paragraph]) -> str:
    """The highest heading of the first page."""
    first = [each for each in passages if each.level and each.page == 1]
    return clipped(min(first, key=lambda each: each.level).text, TITLE_CHARS) if first else ""


def _outline(document: Any) -> list[Heading]:
    """The PDF's own bookmarks."""
    found = []
    for level, title, page, *_ in (attempted(lambda: document.get_toc(simple=True)) or ())[:_OUTLINE_MAX]:
        text = clean(str(title)).replace("\n", " ").strip()
        if text and 1 <= page <= document.page_count:
            found.append(Heading(text=clipped(text, TITLE_CHARS), page=page, level=min(max(level, 1), 6)))
    return found
