"""A run as it is asked for and followed (``pmagent.jobs.following``)."""

from __future__ import annotations

from typing import Any

import msgspec

from contracts.orchestra_events import RunRequested
from events.event import Event
from events.redact import MASK
from pmagent.host import Host
from pmagent.jobs.kinds import RUNS
from pmagent.orchestra.asking import open_runs
from pmagent.orchestra.progress import Progress


class RunErrand:
    """See Errand."""

    kind = RUNS

    def __init__(self, asked: RunRequested) -> None:
        self.asked = asked
        self.id = asked.run_id

    def arguments(self) -> dict[str, Any]:
        """See Errand."""
        arguments: dict[str, Any] = msgspec.to_builtins(self.asked)
        return arguments

    def cancelling(self, reason: str) -> dict[str, Any]:
        """See Errand."""
        return {"run_id": self.id, "reason": reason}

    def begin(self, requested: Event) -> Progress:
        """See Errand."""
        return Progress(requested)

    def remark(self, progress: Progress) -> str:
        """See Errand."""
        if progress.asked.plan == self.asked.plan:
            return ""
        return f"the plan holds secrets, which are masked: tools get {MASK} in their place"

    def left_open(self, host: Host) -> list[str]:
        """See Errand."""
        return open_runs(host)
