"""The images and drawings of a report (docs/design.md §15.5); blocking."""

from __future__ import annotations

import threading

from pmagent.actors.audit.sources.pdf.reader import asked
from pmagent.actors.audit.sources.pdf.wire import Pictured
from pmagent.contracts.audit_events import AuditLimits
from pmagent.contracts.audit_facts import PictureReading


def read_pictures(
    path: str, limits: AuditLimits, stop: threading.Event | None = None
) -> tuple[PictureReading, dict[str, bytes]]:
    """The images of the PDF at ``path``, and the PNG of each by its SHA-256.

    Blocks. ``stop``, once set, ends it. Raises SourceFailed as ``read_pdf`` does."""
    answer = asked(path, limits, Pictured, stop, what="pictures", pictures=limits.pictures)
    return answer.reading, answer.blobs
