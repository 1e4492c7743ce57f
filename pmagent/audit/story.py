"""An audit told whole: what its report is made of, and how far each part of it has come."""

from __future__ import annotations

from contracts.audit_events import AuditFailed, AuditOpinionRejected, AuditRequested
from events.event import Event
from pmagent.audit.progress import Progress
from projections.audits import fold
from projections.audits.places import DOCUMENT, MARKDOWN
from projections.audits.view import Audit


class Story:
    """An audit from its request on, as ``pmagent.jobs.shelf`` keeps it. ``audit`` is what its documents are made of,
    ``progress`` what commands show of it."""

    def __init__(self, requested: Event, sum: str) -> None:
        assert isinstance(requested.data, AuditRequested), "an audit begins with its request"
        self.audit: Audit = fold.requested(requested, requested.data, sum)
        self.progress = Progress(requested)
        self.asked: AuditRequested = requested.data
        self.rejected: list[AuditOpinionRejected] = []
        self.stopped_by = 0
        """The position of the event because of which it failed; 0: it has not."""
        self._report: dict[str, bytes] = {}

    @property
    def over(self) -> bool:
        """See ``Story`` of the shelf."""
        return self.audit.doing == "over"

    @property
    def weight(self) -> int:
        """Pieces of evidence, and opinions."""
        return self.audit.items

    def fold(self, event: Event, sum: str) -> None:
        """See ``Story`` of the shelf."""
        data = event.data
        self.progress.fold(event)
        if type(data) in fold.HANDLERS:
            self.audit = fold.evolved(self.audit, event, sum)
        if isinstance(data, AuditOpinionRejected):
            self.rejected.append(data)
        elif isinstance(data, AuditFailed):
            self.stopped_by = event.causation

    def report(self, log_id: str) -> dict[str, bytes]:
        """The report of an audit that has concluded, by the ending of its file's name: the bytes that its projection
        makes of the same events; {} while there is none."""
        if self.audit.concluded is not None and not self._report:
            from projections.audits.rebuilt import provenance_of, report_of  # pydantic, with the first report
            from projections.audits.report import report_json, report_markdown

            report, provenance = report_of(self.audit), provenance_of(self.audit, log_id)
            self._report = {
                MARKDOWN: report_markdown(report, provenance).encode(), DOCUMENT: report_json(report, provenance)
            }
        return self._report
