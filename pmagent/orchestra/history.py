"""The runs that a log tells of; reading only, whoever writes it (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from contracts.orchestra import TaskDocument
from contracts.orchestra_events import RunEnded, RunRefused, RunRequested
from contracts.payload import typed
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import NotFound, PmagentError
from events.event import Event, StoredEvent
from events.reader import runs as event_runs
from events.segments import SegmentReader
from events.storage import StorageReader
from pmagent.layout import Layout
from pmagent.orchestra.progress import Progress
from projections.runs import fold as document_fold
from projections.runs.numbers import task_documents

REQUESTED: Final = "run.requested"
_ENDS: Final = frozenset(("run.refused", "run.ended", "request.refused"))
_WINDOW: Final = 4096
"""The latest runs are looked for backwards, first in so many events, then in twice as many, and so on."""


class NoSuchRun(PmagentError):
    """The log tells of no run that is called so, or of several."""

    exit_code = 1


class Listed(msgspec.Struct, frozen=True):
    """A run in a list. ``end`` None: it is open."""

    requested: Event
    end: Event | None

    @property
    def asked(self) -> RunRequested:
        """Its request."""
        asked: RunRequested = self.requested.data
        return asked

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        if self.end is None:
            return "open"
        return self.end.data.state if isinstance(self.end.data, RunEnded) else "refused"

    @property
    def reasons(self) -> list[str]:
        """Why it ended so."""
        data = self.end.data if self.end is not None else None
        return list(data.reasons) if isinstance(data, RunEnded | RunRefused) else []


class History:
    """The log of a workspace, and what lies beside it. Use ``opened``."""

    def __init__(self, storage: StorageReader, blobs: BlobStore) -> None:
        self.storage = storage
        self.blobs = blobs

    def latest(self, count: int) -> list[Listed]:
        """The last ``count`` runs that were asked for, newest first. Raises CorruptLog."""
        high, size = self.storage.tail().position, _WINDOW
        found: list[Listed] = []
        ends: dict[str, list[StoredEvent]] = {}
        while high >= 1 and len(found) < count:
            low = max(1, high - size + 1)
            requests: list[StoredEvent] = []
            for event in self._between(low, high):
                if event.type == REQUESTED:
                    requests.append(event)
                elif event.type in _ENDS:
                    ends.setdefault(event.correlation, []).append(event)
            found += [self._listed(event, ends.get(event.correlation, [])) for event in reversed(requests)]
            high, size = low - 1, size * 2
        return found[:count]

    def called(self, prefix: str) -> Event:
        """The request of the one run whose id begins so; of an id used again, the last. Raises NoSuchRun,
        CorruptLog."""
        prefix = prefix.lower()
        found: dict[str, StoredEvent] = {}
        high, size = self.storage.tail().position, _WINDOW
        while high >= 1 and (len(prefix) < _ID_CHARS or not found):
            low = max(1, high - size + 1)
            for event in self._between(low, high):
                if event.type == REQUESTED and event.correlation.startswith(prefix):
                    held = found.get(event.correlation)
                    if held is None or held.position < event.position:
                        found[event.correlation] = event
            high, size = low - 1, size * 2
        if not found:
            raise NoSuchRun(f"there is no run whose id begins with {prefix[:_ID_CHARS]!r}", "pmagent runs lists them")
        if len(found) > 1:
            names = ", ".join(sorted(found)[:4])
            raise NoSuchRun(f"{len(found)} runs have ids that begin with {prefix!r}: {names}", "give more of it")
        (request,) = found.values()
        return typed(request, self.blobs)

    def progress(self, requested: Event) -> Progress:
        """The run as the log has it. Raises CorruptLog."""
        progress = Progress(requested)
        for event, _ in self._of(requested):
            progress.fold(event)
            if progress.over:
                break
        return progress

    def task_documents(self, requested: Event) -> list[TaskDocument]:
        """The tasks of the run's newest plan, whole. Raises CorruptLog."""
        run = document_fold.requested(requested, requested.data, "")
        for event, sum_ in self._of(requested):
            run = document_fold.evolved(run, event, sum_)
            if run.end:
                break
        return task_documents(run)

    def _of(self, requested: Event) -> Iterator[tuple[Event, str]]:
        """The events of the run behind its request, with their sums."""
        for run in event_runs(self.storage, requested.position + 1):
            for stored in run:
                if stored.correlation == requested.correlation:
                    yield typed(stored, self.blobs), stored.sum

    def _between(self, low: int, high: int) -> Iterator[StoredEvent]:
        for run in event_runs(self.storage, low, high):
            yield from run

    def _listed(self, request: StoredEvent, ends: list[StoredEvent]) -> Listed:
        for stored in ends:
            if stored.position > request.position:
                end = typed(stored, self.blobs)
                if end.data.request == request.position:
                    return Listed(typed(request, self.blobs), end)
        return Listed(typed(request, self.blobs), None)


_ID_CHARS: Final = 36


@contextmanager
def opened(layout: Layout) -> Iterator[History]:
    """The workspace's log, for reading; nothing is written. Raises NotFound where there is none."""
    disk = RealDisk()
    try:
        storage = SegmentReader(disk, str(layout.log))
    except NotFound:
        raise NotFound(
            f"there is no log in {layout.workspace}", "pmagent init makes a workspace, pmagent run or up begins its log"
        ) from None
    try:
        yield History(storage, BlobStore(disk, str(layout.blobs)))
    finally:
        storage.close()
