"""A run told whole: what its documents say, where each attempt stands in the log, and which blobs are its own."""

from __future__ import annotations

from typing import Final

import msgspec

from contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectRefused, EffectTimedOut
from contracts.orchestra_events import (
    Captured,
    RunRequested,
    RunStopping,
    TaskAttemptRequested,
    TaskExited,
    TaskUnstarted,
)
from events.event import Event
from projections.runs import fold
from projections.runs.folders import RunFolders
from projections.runs.view import Run

NAMES_MAX: Final = 8
"""So many names of one content are remembered."""
STREAMS: Final = ("stdout", "stderr")


class Attempt(msgspec.Struct, gc=False):
    """Where an attempt stands in the log: the positions of its request and of its end (0: it has none yet)."""

    number: int
    requested: int
    ended: int = 0


class Kept(msgspec.Struct, gc=False):
    """A content that the run's events name, by its SHA-256: its size in bytes, and the names that it bears."""

    size: int
    names: list[str]


class Story:
    """A run from its request on, as ``pmagent.jobs.shelf`` keeps it. ``run`` is what its documents are made of."""

    def __init__(self, requested: Event, sum: str) -> None:
        assert isinstance(requested.data, RunRequested), "a run begins with its request"
        self.run: Run = fold.requested(requested, requested.data, sum)
        self.attempts: dict[str, list[Attempt]] = {}
        """Task id -> its attempts, the first first."""
        self.kept: dict[str, Kept] = {}
        self.stopped_by = 0
        """The position of the event because of which it is to end before its time; 0: there is none."""
        self._open: dict[int, Attempt] = {}

    @property
    def over(self) -> bool:
        """See ``Story`` of the shelf."""
        return self.run.doing == "over"

    @property
    def weight(self) -> int:
        """Tasks, and attempts beyond one of each."""
        return len(self.run.tasks) + len(self.kept) // 4

    def fold(self, event: Event, sum: str) -> None:
        """See ``Story`` of the shelf."""
        if type(event.data) in RunFolders.hears:
            self.run = fold.evolved(self.run, event, sum)
        data = event.data
        match data:
            case TaskAttemptRequested():
                attempt = self._open[event.position] = Attempt(data.attempt, event.position)
                self.attempts.setdefault(data.task_id, []).append(attempt)
            case TaskExited() | TaskUnstarted() | EffectInterrupted() | EffectCancelled() | EffectFailed():
                self._ended(event, data.request)
                if isinstance(data, TaskExited):
                    self._keep(data)
            case EffectTimedOut() | EffectRefused():
                self._ended(event, data.request)
            case RunStopping():
                self.stopped_by = event.causation

    def _ended(self, event: Event, request: int) -> None:
        attempt = self._open.pop(request, None)
        if attempt is not None:
            attempt.ended = event.position

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
