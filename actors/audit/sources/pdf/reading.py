"""What a report says, as facts (docs/design.md §15.5); blocking."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from pmagent.actors.audit.sources.pdf.reader import asked
from pmagent.actors.audit.sources.pdf.wire import Read
from pmagent.actors.sandbox.reader.arguments import UNSANDBOXED, bubblewrap_options
from pmagent.contracts.audit_events import AuditLimits, Question
from pmagent.contracts.audit_facts import PdfReading


def read_pdf(
    path: str, questions: Sequence[Question], limits: AuditLimits, stop: threading.Event | None = None
) -> PdfReading:
    """What there is in the PDF at ``path``: its headings, the paths that it names, what it claims, and what it says on
    each of the ``questions``: excerpts whose ``query`` is a term of the question, or its instruction.

    Blocks. ``stop``, once set, ends it. Raises SourceFailed, with a code that begins with ``pdf_``, ``cancelled``, or
    ``failed`` where no process can be started."""
    reading = asked(path, limits, Read, stop, what="reading", questions=list(questions)).reading
    return reading if bubblewrap_options(()) else msgspec.structs.replace(reading, notes=[*reading.notes, UNSANDBOXED])
