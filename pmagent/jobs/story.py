"""A job as the story cache keeps it: its view, and the further facts that its pages show."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectRefused, EffectTimedOut
from pmagent.contracts.orchestra_events import Captured, TaskAttemptRequested, TaskExited, TaskUnstarted
from pmagent.events.event import Event
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.projections.audits.audits import report_files
from pmagent.projections.views.audits import Audit
from pmagent.projections.views.jobs import JobView
from pmagent.projections.views.runs import Run

NAMES_MAX: Final = 8
"""So many names of one content are remembered."""
STREAMS: Final = ("stdout", "stderr")

V = TypeVar("V", bound=JobView)


class Story(Generic[V]):
    """A job from its request on."""

    def __init__(self, kind: Kind, requested: Event, sum: str) -> None:
        self._kind = kind
        self.view: V = kind.begun(requested, sum)
        self.pruned = ""
        """The log time at which its documents and content were given up; "": they are kept."""

    @property
    def weight(self) -> int:
        """How much it holds."""
        return self.view.weight

    def fold(self, event: Event, sum: str) -> None:
        """Take the next event of its correlation, whose line has ``sum``."""
        self.view = self._kind.evolved(self.view, event, sum)


class Attempt(msgspec.Struct, gc=False):
    """Where an attempt stands in the log: the positions of its request and of its end (0: it has none yet)."""

    number: int
    requested: int
    ended: int = 0


class Kept(msgspec.Struct, gc=False):
    """A content that the run's events name, by its SHA-256: its size in bytes, and the names that it bears."""

    size: int
    names: list[str]


class RunStory(Story[Run]):
    """A run: where each attempt stands in the log, and which blobs are its own."""

    def __init__(self, requested: Event, sum: str) -> None:
        super().__init__(RUNS, requested, sum)
        self.attempts: dict[str, list[Attempt]] = {}
        """Task id -> its attempts, the first first."""
        self.kept: dict[str, Kept] = {}
        self._open: dict[int, Attempt] = {}

    @property
    def weight(self) -> int:
        """Tasks, and attempts beyond one of each."""
        return super().weight + len(self.kept) // 4

    def fold(self, event: Event, sum: str) -> None:
        """See Story."""
        super().fold(event, sum)
        data = event.data
        if isinstance(data, TaskAttemptRequested):
            attempt = self._open[event.position] = Attempt(data.attempt, event.position)
            self.attempts.setdefault(data.task_id, []).append(attempt)
        elif isinstance(data, _ATTEMPT_ENDS):
            if (ended := self._open.pop(data.request, None)) is not None:
                ended.ended = event.position
            if isinstance(data, TaskExited):
                self._keep(data)

    def _keep(self, exited: TaskExited) -> None:
        for artifact in exited.artifacts:
            self._named(artifact.checksum, artifact.size_bytes, artifact.path.rpartition("/")[2])
        for name in STREAMS:
            captured: Captured = getattr(exited, name)
            self._named(captured.sha256, captured.size_bytes, name)

    def _named(self, sha256: str, size: int, name: str) -> None:
        kept = self.kept.setdefault(sha256, Kept(size, []))
        if name not in kept.names and len(kept.names) < NAMES_MAX:
            kept.names.append(name)


_ATTEMPT_ENDS: Final = (
    TaskExited, TaskUnstarted, EffectInterrupted, EffectCancelled, EffectFailed, EffectTimedOut, EffectRefused
)  # fmt: skip


class AuditStory(Story[Audit]):
    """An audit, and its report once that is there."""

    def __init__(self, requested: Event, sum: str) -> None:
        super().__init__(AUDITS, requested, sum)
        self._report: dict[str, bytes] = {}

    def report(self, log_id: str) -> dict[str, bytes]:
        """The report of an audit that has concluded, by the ending of its file's name: the bytes that its projection
        makes of the same events; {} while there is none."""
        if self.view.concluded is not None and not self._report:
            self._report = report_files(self.view, log_id)
        return self._report
