"""The contents of a report, as facts (docs/design.md §15.5); blocking."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf.reader import asked, content, shown
from pmagent.actors.audit.sources.pdf.wire import HEAD, MARK, Opened, Read
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED, bubblewrap_options
from pmagent.contracts.audit_events import AuditLimits, Question
from pmagent.contracts.audit_facts import PdfReading


def read_pdf(
    path: str, questions: Sequence[Question], limits: AuditLimits, stop: threading.Event | None = None
) -> PdfReading:
    """The contents of the PDF at ``path``: its headings, the paths that it names, what it claims, and what it says on
    each of the ``questions``: excerpts whose ``query`` is a term of the question, or its instruction.

    Blocks. ``stop``, once set, ends it. Raises SourceFailed, with a code that begins with ``pdf_``, ``cancelled``, or
    ``failed`` where no process can be started."""
    reading = asked(path, limits, Read, stop, what="reading", questions=list(questions)).reading
    return reading if bubblewrap_options(()) else msgspec.structs.replace(reading, notes=[*reading.notes, UNSANDBOXED])


def check_pdf(path: str, limits: AuditLimits) -> None:
    """See that the file at ``path`` is of the right kind: a PDF that has bytes and asks for no password. A damaged one,
    and one beyond a limit, is for ``read_pdf`` to tell. Blocks. Raises SourceFailed: pdf_missing, pdf_empty,
    pdf_damaged, pdf_encrypted."""
    try:
        pdf = content(path, limits.pdf_bytes)
    except SourceFailed as failed:
        if failed.code == "pdf_too_large":
            return
        raise
    if not pdf:
        raise SourceFailed("pdf_empty", f"{shown(path)} is empty: it has no bytes", "export the report again")
    if MARK not in pdf[:HEAD]:
        raise SourceFailed("pdf_damaged", f"{shown(path)} is not a PDF: it does not begin with %PDF-", "name a PDF")
    if b"/Encrypt" not in pdf:  # stands in the trailer, which is never packed
        return
    try:
        asked(path, limits, Opened, None, what="opening")
    except SourceFailed as failed:
        if failed.code == "pdf_encrypted":
            raise
