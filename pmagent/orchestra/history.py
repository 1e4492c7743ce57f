"""The runs that a log tells of; reading only, whoever writes it (docs/design.md §7)."""

from __future__ import annotations

from contextlib import AbstractContextManager

from contracts.orchestra import TaskDocument
from events.event import Event
from pmagent.jobs.history import Job, Jobs, opened
from pmagent.jobs.kinds import RUNS
from pmagent.layout import Layout
from pmagent.orchestra.progress import Progress
from projections.runs import fold as document_fold
from projections.runs.numbers import task_documents


class History(Jobs):
    """The log of a workspace, and what lies beside it. Use ``opened_history``."""

    def latest(self, count: int, *, state: str = "", text: str = "", before: int = 0) -> list[Job]:
        """The last ``count`` runs that were asked for, newest first; see ``last``. Raises CorruptLog."""
        return self.last(RUNS, count, state=state, text=text, before=before)

    def called(self, prefix: str) -> Event:
        """The request of the one run whose id begins so; of an id used again, the last. Raises NoSuchJob,
        CorruptLog."""
        return self.request(prefix, [RUNS])

    def progress(self, requested: Event) -> Progress:
        """The run as the log has it. Raises CorruptLog."""
        progress = Progress(requested)
        for event, _ in self.behind(requested):
            progress.fold(event)
            if progress.over:
                break
        return progress

    def task_documents(self, requested: Event) -> list[TaskDocument]:
        """The tasks of the run's newest plan, whole. Raises CorruptLog."""
        run = document_fold.requested(requested, requested.data, "")
        for event, sum_ in self.behind(requested):
            run = document_fold.evolved(run, event, sum_)
            if run.end:
                break
        return task_documents(run)


def opened_history(layout: Layout) -> AbstractContextManager[History]:
    """The workspace's log, for reading; nothing is written. Raises NotFound where there is none."""
    return opened(layout, History)
