"""The causes that keep a repository or a PDF from being read; pure."""

from __future__ import annotations

from pmagent.contracts.audit_events import FailureCode
from pmagent.events.errors import PmagentError


class SourceFailed(PmagentError, exit_code=1):
    """The repository or the PDF could not be read: which way (``code``), what happened, what next. Text of git, of
    PyMuPDF and of the system stays out of it, but for what is needed to know the cause."""

    def __init__(self, code: FailureCode, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.code = code
