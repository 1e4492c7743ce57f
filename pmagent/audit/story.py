"""An audit told whole: what its report is made of, and how far each part of it has come."""

from __future__ import annotations

from contracts.audit_events import AuditOpinionRejected, AuditRequested
from events.event import Event
from pmagent.audit.progress import Progress
from pmagent.jobs.cancelling import Cancels
from projections.audits import fold
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
        self.cancels = Cancels()

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
        self.cancels.fold(event)
