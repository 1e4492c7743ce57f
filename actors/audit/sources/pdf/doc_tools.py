"""Tools for documents, under the contract's names (docs/design.md §15.5); blocking.

    report = ingest_pdf("report.pdf")
    print(report.query("How are the judges kept apart?"))
    for image in extract_images_from_pdf("report.pdf"):
        print(image.page, analyze_diagram(image, "What does it show?", model))

Every PDF is read by a process of its own, within the limits of an audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Literal, Self

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf.diagrams import NOT_INSPECTED, analyze_diagram
from pmagent.actors.audit.sources.pdf.index import DocStore
from pmagent.actors.audit.sources.pdf.pictures import read_pictures
from pmagent.actors.audit.sources.pdf.reader import asked, shown
from pmagent.actors.audit.sources.pdf.wire import ChunkBy, Segment, Segmented
from pmagent.contracts.audit_events import AuditLimits
from pmagent.events.errors import PmagentError

__all__ = [
    "NOTHING_FOUND", "NOT_INSPECTED", "ChunkBy", "DocStore", "PDFImage", "PDFImages", "PDFIngestionResult",
    "PDFParseError", "Segment", "analyze_diagram", "extract_images_from_pdf", "ingest_pdf", "query_doc",
]  # fmt: skip

NOTHING_FOUND: Final = "No relevant excerpts found."


class PDFParseError(PmagentError, exit_code=1):
    """The file could not be read as a PDF; ``code`` says which way, as in SourceFailed."""

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message, hint)
        self.code = code


class PDFIngestionResult:
    """A PDF that was read: ``segments``, and what is known of the whole. ``notes`` says what could not be read.

    Close it, or let go of it: the segments are indexed in memory."""

    def __init__(self, title: str, pages: int, segments: Sequence[Segment], notes: Sequence[str]) -> None:
        self.title = title
        self.pages = pages
        self.notes = tuple(notes)
        self.store = DocStore(segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The text, in pieces, in its order."""
        return self.store.segments

    def query(self, question: str) -> str:
        """As ``query_doc``."""
        return query_doc(self.store, question)

    def close(self) -> None:
        """Give the memory back."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PDFImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a PDF: ``png`` its bytes, ``page`` (from 1) the first that shows it. ``kind`` drawing: a vector
    drawing as it looks on its page; ``words`` are those within it."""

    png: bytes
    page: int
    kind: Literal["embedded", "drawing"]
    width: int
    height: int
    words: tuple[str, ...] = ()


class PDFImages(list[PDFImage]):
    """Images in the order of pages. ``total`` is how many there are, ``notes`` what was left out and why."""

    def __init__(self, images: Sequence[PDFImage], total: int, notes: Sequence[str]) -> None:
        super().__init__(images)
        self.total = total
        self.notes = tuple(notes)


def ingest_pdf(
    pdf_path: str, chunk_by: Literal["char", "page"] = "char", limits: AuditLimits | None = None
) -> PDFIngestionResult:
    """Read a PDF into segments: pages, or chunks of up to 1,500 characters with an overlap.

    Raises ValueError for another ``chunk_by``, FileNotFoundError where there is no such file, and PDFParseError."""
    if chunk_by not in {"char", "page"}:
        raise ValueError(f"chunk_by is 'char' or 'page', not {chunk_by!r}")
    try:
        read = asked(pdf_path, limits or AuditLimits(), Segmented, None, what="segments", chunk_by=chunk_by)
    except SourceFailed as error:
        raise _translated(error, pdf_path) from error
    return PDFIngestionResult(read.title, read.pages, read.segments, read.notes)


def query_doc(store: DocStore | PDFIngestionResult, question: str) -> str:
    """The excerpts that fit the question best, by BM25, each behind the number of its page; ``NOTHING_FOUND`` where no
    word of it occurs that means anything."""
    hits = (store.store if isinstance(store, PDFIngestionResult) else store).search(question)
    told = dict.fromkeys(f"[page {hit.page_no}] {hit.text}" for hit in hits)
    return "\n\n".join(told) or NOTHING_FOUND


def extract_images_from_pdf(pdf_path: str, limits: AuditLimits | None = None) -> PDFImages:
    """The embedded images and the vector drawings of a PDF: an empty list where it has none.

    Raises FileNotFoundError where there is no such file, and PDFParseError."""
    try:
        reading, blobs = read_pictures(pdf_path, limits or AuditLimits())
    except SourceFailed as error:
        raise _translated(error, pdf_path) from error
    images = [
        PDFImage(
            png=blobs[each.sha256], page=each.page, kind=each.kind, width=each.width, height=each.height,
            words=tuple(each.words),
        )
        for each in reading.pictures
    ]
    return PDFImages(images, reading.count, reading.notes)


def _translated(error: SourceFailed, path: str) -> FileNotFoundError | PDFParseError:
    """The failure as the contract names it."""
    if error.code == "pdf_missing":
        return FileNotFoundError(2, error.message, shown(path))
    return PDFParseError(error.message, error.hint, error.code)
