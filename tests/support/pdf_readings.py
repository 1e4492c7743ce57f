"""Readings of PDFs, as they are on a machine with and without bubblewrap."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pmagent.actors.audit.sources.pdf.reading import read_pdf
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED
from pmagent.contracts.audit_events import AuditLimits, Question
from pmagent.contracts.audit_facts import PdfReading


def read(path: str, questions: Sequence[Question] = (), limits: AuditLimits | None = None) -> PdfReading:
    """The reading, without the note that this machine has no wall."""
    found = read_pdf(path, questions, limits or AuditLimits(pdf_seconds=60))
    return msgspec.structs.replace(found, notes=[note for note in found.notes if note != UNSANDBOXED])
