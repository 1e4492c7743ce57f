"""The task of the process that reads a PDF, and its answer, as MessagePack."""

from __future__ import annotations

from typing import Final, Literal, TypedDict

import msgspec

from pmagent.contracts.audit_events import FailureCode, Question
from pmagent.contracts.audit_facts import PdfReading, PictureReading

MODULE: Final = "pmagent.actors.audit.sources.pdf.child"
"""The process's program, for ``run_limited``."""

AT: Final = b"at page "
"""Begins a line on standard error that says which page is looked at from now on."""

HEAD: Final = 1_024
"""A PDF says that it is one within so many bytes."""
MARK: Final = b"%PDF-"

ChunkBy = Literal["char", "page"]


class Segment(TypedDict):
    """A piece of the text of one page; ``page_no`` counts from 1."""

    text: str
    page_no: int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Read ``pdf``, the bytes of one, within ``seconds``; at most ``pages``. ``tesseract``: the path of that program,
    "" where there is none. ``skip``: pages that have brought an earlier process down. The other fields are for one kind
    of task each."""

    what: Literal["reading", "segments", "pictures", "opening"]
    pdf: bytes
    sha256: str
    seconds: float
    pages: int
    tesseract: str = ""
    skip: list[int] = []
    questions: list[Question] = []
    chunk_by: ChunkBy = "char"
    pictures: int = 0


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """It cannot be read: ``text`` continues a sentence that begins with the file's name; ``hint`` says what next."""

    code: FailureCode
    text: str
    hint: str


class Read(msgspec.Struct, frozen=True, tag="read"):
    """The answer to ``reading``."""

    reading: PdfReading


class Segmented(msgspec.Struct, frozen=True, tag="segmented"):
    """The answer to ``segments``."""

    title: str
    pages: int
    segments: list[Segment]
    notes: list[str]


class Pictured(msgspec.Struct, frozen=True, tag="pictured"):
    """The answer to ``pictures``; ``blobs``: PNG by its SHA-256."""

    reading: PictureReading
    blobs: dict[str, bytes]


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The answer to ``opening``: it can be opened without a password."""


Answer = Refused | Read | Segmented | Pictured | Opened
