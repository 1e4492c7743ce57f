"""The audits that a log tells of; reading only, whoever writes it (docs/design.md §7)."""

from __future__ import annotations

from contextlib import AbstractContextManager

from events.event import Event
from pmagent.audit.progress import Progress
from pmagent.jobs.history import Job, Jobs, opened
from pmagent.jobs.kinds import AUDITS
from pmagent.layout import Layout


class History(Jobs):
    """The log of a workspace. Use ``opened_history``."""

    def latest(self, count: int, *, state: str = "", text: str = "", before: int = 0) -> list[Job]:
        """The last ``count`` audits that were asked for, newest first; see ``last``. Raises CorruptLog."""
        return self.last(AUDITS, count, state=state, text=text, before=before)

    def called(self, prefix: str) -> Event:
        """The request of the one audit whose id begins so; of an id used again, the last. Raises NoSuchJob,
        CorruptLog."""
        return self.request(prefix, [AUDITS])

    def progress(self, requested: Event) -> Progress:
        """The audit as the log has it. Raises CorruptLog."""
        progress = Progress(requested)
        for event, _ in self.behind(requested):
            progress.fold(event)
            if progress.over:
                break
        return progress


def opened_history(layout: Layout) -> AbstractContextManager[History]:
    """The workspace's log, for reading; nothing is written. Raises NotFound where there is none."""
    return opened(layout, History)
