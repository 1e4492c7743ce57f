"""The jobs that a log tells of; reading only, whoever writes it (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import msgspec

from contracts.payload import typed
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import NotFound, PmagentError
from events.event import Event, StoredEvent
from events.reader import event_at
from events.reader import runs as event_runs
from events.storage import StorageReader
from pmagent.jobs.kinds import KINDS, Kind
from pmagent.layout import Layout
from pmagent.log.source import opened as opened_log
from projections.jobs import End

ID_CHARS: Final = 36
_WINDOW: Final = 4096
"""The latest jobs are looked for backwards, first in so many events, then in twice as many, and so on."""


class NoSuchJob(PmagentError):
    """The log tells of no job that is called so, or of several."""

    exit_code = 1


class Job(msgspec.Struct, frozen=True):
    """A job in a list. ``ended`` None: it is open."""

    kind: Kind
    requested: Event
    ended: Event | None

    @property
    def asked(self) -> Any:
        """The payload of its request."""
        return self.requested.data

    @property
    def title(self) -> str:
        """What it is about."""
        return str(getattr(self.requested.data, self.kind.about))

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        return self.end.state if self.end is not None else "open"

    @property
    def end(self) -> End | None:
        """How it ended."""
        return self.kind.end_of(self.ended.data) if self.ended is not None else None


class Cancelling(msgspec.Struct, frozen=True):
    """An operator (over ``channel``; both "" where they are not known) wanted the job to end, because of ``reason``."""

    position: int
    time: str
    operator: str
    channel: str
    reason: str


class Jobs:
    """The log of a workspace, and what lies beside it. Use ``opened``."""

    def __init__(self, storage: StorageReader, blobs: BlobStore) -> None:
        self.storage = storage
        self.blobs = blobs

    def last(self, kind: Kind, count: int, *, state: str = "", text: str = "", before: int = 0) -> list[Job]:
        """The last ``count`` jobs of this kind that were asked for before position ``before`` (0: the last of all), are
        in ``state`` and are about something with ``text`` in it, in whatever case; newest first. Raises CorruptLog."""
        wanted = text.casefold()
        high, size = self.storage.tail().position, _WINDOW
        found: list[Job] = []
        ends: dict[str, list[StoredEvent]] = {}
        while high >= 1 and len(found) < count:
            low = max(1, high - size + 1)
            requests: list[StoredEvent] = []
            for event in self._between(low, high):
                if event.type == kind.requested and not 0 < before <= event.position:
                    requests.append(event)
                elif event.type in kind.ends:
                    ends.setdefault(event.correlation, []).append(event)
            jobs = (self._job(kind, event, ends.get(event.correlation, [])) for event in reversed(requests))
            found += [job for job in jobs if state in ("", job.state) and wanted in job.title.casefold()]
            high, size = low - 1, size * 2
        return found[:count]

    def request(self, prefix: str, kinds: Sequence[Kind]) -> Event:
        """The request of the one job of these kinds whose id begins so; of an id used again, the last. Raises
        NoSuchJob, CorruptLog."""
        prefix = prefix.lower()
        types = {kind.requested for kind in kinds}
        found: dict[str, StoredEvent] = {}
        high, size = self.storage.tail().position, _WINDOW
        while high >= 1 and (len(prefix) < ID_CHARS or not found):
            low = max(1, high - size + 1)
            for event in self._between(low, high):
                if event.type in types and event.correlation.startswith(prefix):
                    held = found.get(event.correlation)
                    if held is None or held.position < event.position:
                        found[event.correlation] = event
            high, size = low - 1, size * 2
        words = " or ".join(kind.word for kind in kinds)
        if not found:
            lists = ", ".join(kind.command for kind in kinds)
            one = "lists them" if len(kinds) == 1 else "list them"
            raise NoSuchJob(f"there is no {words} whose id begins with {prefix[:ID_CHARS]!r}", f"{lists} {one}")
        if len(found) > 1:
            names = ", ".join(sorted(found)[:4])
            several = " or ".join(f"{kind.word}s" for kind in kinds)
            raise NoSuchJob(f"{len(found)} {several} have ids that begin with {prefix!r}: {names}", "give more of it")
        (request,) = found.values()
        return typed(request, self.blobs)

    def job(self, kind: Kind, requested: Event) -> Job:
        """The job of a request that ``request`` found. Raises CorruptLog."""
        ends = [event for event in self._behind(requested) if event.type in kind.ends]
        return self._ended(kind, requested, ends)

    def view(self, kind: Kind, requested: Event) -> Any:
        """The ``JobView`` of a request that ``request`` found, as far as the log goes. Raises CorruptLog."""
        view = kind.begun(requested, event_at(self.storage, requested.position).sum)
        for stored in self._behind(requested):
            view = kind.evolved(view, typed(stored, self.blobs), stored.sum)
            if view.over:
                break
        return view

    def cancelling(self, position: int) -> Cancelling | None:
        """What the event at ``position`` wanted to end; None for an event of another kind, and for 0. Raises
        CorruptLog."""
        if not position:
            return None
        event = typed(event_at(self.storage, position), self.blobs)
        data = event.data
        if not any(isinstance(data, kind.cancellation) for kind in KINDS):
            return None
        return Cancelling(event.position, event.time, data.operator_id, data.channel, data.reason)

    def _behind(self, requested: Event) -> Iterator[StoredEvent]:
        for run in event_runs(self.storage, requested.position + 1):
            for stored in run:
                if stored.correlation == requested.correlation:
                    yield stored

    def _between(self, low: int, high: int) -> Iterator[StoredEvent]:
        for run in event_runs(self.storage, low, high):
            yield from run

    def _job(self, kind: Kind, request: StoredEvent, ends: list[StoredEvent]) -> Job:
        return self._ended(kind, typed(request, self.blobs), ends)

    def _ended(self, kind: Kind, requested: Event, ends: list[StoredEvent]) -> Job:
        for stored in ends:
            if stored.position > requested.position:
                end = typed(stored, self.blobs)
                if end.data.request == requested.position:
                    return Job(kind, requested, end)
        return Job(kind, requested, None)


@contextmanager
def opened(layout: Layout) -> Iterator[Jobs]:
    """The workspace's log, for reading; nothing is written. Raises NotFound where there is none; CorruptLog where there
    are segments, but no HEAD."""
    with ExitStack() as stack:
        try:
            storage = stack.enter_context(opened_log(layout.log))
        except NotFound:
            raise NotFound(
                f"there is no log in {layout.workspace}",
                "pmagent init makes a workspace, pmagent run or up begins its log",
            ) from None
        yield Jobs(storage, BlobStore(RealDisk(), str(layout.blobs)))
