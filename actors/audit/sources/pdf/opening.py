"""Opens what claims to be a PDF; runs in the reading process."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Container, Sized
from typing import Any, Final, NoReturn, TypeVar

import pymupdf

from pmagent.actors.audit.lists import Lists
from pmagent.actors.audit.sources.pdf.wire import AT, HEAD, MARK
from pmagent.contracts.audit_events import FailureCode

_LISTS: Final = Lists(__package__, "opening")

T = TypeVar("T")

mupdf: Any = pymupdf
"""PyMuPDF, which has no types."""

_TOLD: Final = 2
"""The descriptor by which who started this process is told how far it is: standard error."""
CONTENT_BYTES: Final = 8 * 2**20
_RATIO: Final = 10
"""So many bytes of a page come of one that is packed, as a rule."""

_NO_MEMORY: Final = _LISTS.pattern("no_memory")

FAILURES: Final = (
    mupdf.mupdf.FzErrorBase, RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError,
    ZeroDivisionError, OverflowError,
)
"""The exceptions that PyMuPDF raises on what is damaged: MuPDF's, its own, and those where it stumbles."""


class Unreadable(Exception):
    """It cannot be read: see ``Refused``."""

    def __init__(self, code: FailureCode, text: str, hint: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.hint = hint


def open_pdf(pdf: bytes, pages: int) -> Any:
    """A document of PyMuPDF's with 1 to ``pages`` pages. Raises Unreadable, or MemoryError."""
    mupdf.TOOLS.mupdf_display_errors(on=False)
    mupdf.TOOLS.mupdf_display_warnings(on=False)
    if not pdf:
        raise Unreadable("pdf_empty", "is empty: it has no bytes", "export the report again")
    if MARK not in pdf[:HEAD]:
        raise Unreadable("pdf_damaged", "is not a PDF: it does not begin with %PDF-", "give the path of a PDF")
    try:
        document = mupdf.open(stream=pdf, filetype="pdf")
        if not document.is_pdf:
            raise Unreadable("pdf_damaged", "is not a PDF, though it says so", "give the path of a PDF")
        if document.needs_pass:
            raise Unreadable(
                "pdf_encrypted", "is encrypted, and asks for a password", "save it without a password (qpdf --decrypt)"
            )
        count = int(document.page_count)
    except FAILURES as error:
        short_of_memory(error)
        damaged()
    if count == 0:
        raise Unreadable("pdf_empty", "has no pages", "export the report again")
    if count > pages:
        raise Unreadable(
            "pdf_too_large", f"has {count:,} pages; the limit is {pages:,}",
            "audit a shorter report, or raise pdf_pages",
        )
    return document


def page_of(document: Any, number: int, skip: Container[int]) -> Any | None:
    """The page with that number, from 1; None where it cannot be had, or is to be skipped. The process that started
    this one is told of it first: the page may be the end of this one."""
    if number in skip:
        return None
    os.write(_TOLD, b"%s%d\n" % (AT, number))
    return attempted(lambda: document[number - 1])


def broken_down(skip: Sized) -> list[str]:
    """A note on the pages that were skipped."""
    return [f"pages on which the reader broke down, left out: {len(skip)}"] if len(skip) else []


def ran_into_errors() -> bool:
    """Whether MuPDF told of errors since this was asked last."""
    return "error:" in str(mupdf.TOOLS.mupdf_warnings())


def damaged() -> NoReturn:
    """It cannot be parsed. Raises Unreadable."""
    raise Unreadable(
        "pdf_damaged", "is damaged: its parts cannot be found", "export the report again, or mend it (mutool clean)"
    )


def short_of_memory(error: BaseException) -> None:
    """Raises MemoryError if that is what the library's error says."""
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        raise MemoryError from error


def attempted(act: Callable[[], T]) -> T | None:
    """The result of ``act``; None where the PDF does not let it. Raises MemoryError."""
    try:
        return act()
    except FAILURES as error:
        short_of_memory(error)
        return None


def heavy(page: Any) -> bool:
    """Whether a page says so much that its paths are better not made objects of: more than ``CONTENT_BYTES``; or
    nobody can say how much."""
    size = attempted(lambda: sum(_unpacked(page.parent, number) for number in page.get_contents()))
    return size is None or size > CONTENT_BYTES


def _unpacked(document: Any, number: int) -> int:
    """How many bytes a stream has, as far as that matters."""
    packed = document.xref_stream_raw(number) or b""
    kind, name = document.xref_get_key(number, "Filter")
    if kind == "null":
        return len(packed)
    if (kind, name) != ("name", "/FlateDecode"):
        return len(packed) * _RATIO
    try:
        return len(zlib.decompressobj().decompress(packed, CONTENT_BYTES + 1))
    except zlib.error:
        return len(packed)
