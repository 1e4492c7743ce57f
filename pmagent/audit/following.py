"""An audit as it is asked for and followed (``pmagent.jobs.following``)."""

from __future__ import annotations

from typing import Any

import msgspec

from contracts.audit_events import AuditRequested
from events.event import Event
from events.redact import MASK
from pmagent.audit.asking import open_audits
from pmagent.audit.progress import Progress
from pmagent.host import Host
from pmagent.jobs.kinds import AUDITS


class AuditErrand:
    """See Errand."""

    kind = AUDITS

    def __init__(self, asked: AuditRequested) -> None:
        self.asked = asked
        self.id = asked.audit_id

    def arguments(self) -> dict[str, Any]:
        """See Errand."""
        arguments: dict[str, Any] = msgspec.to_builtins(self.asked)
        return arguments

    def cancelling(self, reason: str) -> dict[str, Any]:
        """See Errand."""
        return {"audit_id": self.id, "reason": reason}

    def begin(self, requested: Event) -> Progress:
        """See Errand."""
        return Progress(requested)

    def remark(self, progress: Progress) -> str:
        """See Errand."""
        if progress.asked == self.asked or MASK.encode() not in msgspec.json.encode(progress.asked):
            return ""
        return f"the request holds secrets, which are masked: the audit goes by {MASK} in their place"

    def left_open(self, host: Host) -> list[str]:
        """See Errand."""
        return open_audits(host)
