"""Caches the jobs viewed last, each folded up to the log's end: viewing one again reads only new events
(docs/design.md §7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from pmagent.contracts.payload import typed
from pmagent.events.event import Event, StoredEvent, Tail
from pmagent.events.reader import event_at, matching_runs
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import Jobs, opened, still_holds
from pmagent.jobs.kinds import Kind
from pmagent.jobs.story import Story
from pmagent.workspace.layout import Layout

STORIES_KEPT: Final = 8
WEIGHT_KEPT: Final = 30_000
"""The most that all cached stories together may weigh (tasks; pieces of evidence); the newest always stays."""


S = TypeVar("S", bound=Story[Any])


class _Cached(Generic[S]):
    """A story; ``after`` is the last position that was read for it."""

    def __init__(self, log_id: str, requested: int, story: S) -> None:
        self.log_id = log_id
        self.requested = requested
        self.story = story
        self.after = requested
        self.tail = Tail()
        """The log's end when it was read last."""


class StoryCache(Generic[S]):
    """Stories of jobs of one kind. ``begun``: a request and its line's sum -> the story so far."""

    def __init__(
        self, layout: Layout, catalogue: Catalogue, kind: Kind, begun: Callable[[Event, str], S],
        kept: int = STORIES_KEPT, weight: int = WEIGHT_KEPT,
    ) -> None:
        self._layout = layout
        self._catalogue = catalogue
        self.kind = kind
        self._begun = begun
        self._kept = kept
        self._weight = weight
        self._cached: dict[str, _Cached[S]] = {}
        """The most recently used comes last."""
        self._lock = threading.Lock()

    @contextmanager
    def story(self, job_id: str) -> Iterator[tuple[S, Jobs]]:
        """The job with this whole id as the log has it now, and the log; nobody else has the story meanwhile.

        Raises NoSuchJob, CorruptLog; NotFound where there is no log.
        """
        asked = self._catalogue.called([self.kind], job_id)
        with self._lock, opened(self._layout) as jobs:
            cached = self._refreshed(jobs, job_id, asked.position)
            cached.story.pruned = asked.pruned
            yield cached.story, jobs

    def _refreshed(self, jobs: Jobs, job_id: str, position: int) -> _Cached[S]:
        storage = jobs.storage
        log_id, tail, cached = storage.log_id(), storage.tail(), self._cached.pop(job_id, None)
        same = cached is not None and (cached.log_id, cached.requested) == (log_id, position)
        if cached is None or not same or not still_holds(storage, cached.tail):
            stored = event_at(storage, position)
            cached = _Cached(log_id, position, self._begun(typed(stored, jobs.blobs), stored.sum))
        self._fold_new(jobs, cached, job_id, tail.position)  # if this raises, the next call begins anew
        cached.tail = tail
        self._cached[job_id] = cached
        self._evict()
        return cached

    def _fold_new(self, jobs: Jobs, cached: _Cached[S], job_id: str, end: int) -> None:
        if cached.story.view.over:
            return
        needles = ([b'"correlation":"%b"' % job_id.encode()],)
        for events, last in matching_runs(jobs.storage, cached.after + 1, end, needles):
            mine = (stored for stored in events if stored.correlation == job_id)
            if _ended(cached.story, mine, jobs):
                return
            cached.after = last

    def _evict(self) -> None:
        while len(self._cached) > 1 and (
            len(self._cached) > self._kept or sum(one.story.weight for one in self._cached.values()) > self._weight
        ):
            del self._cached[next(iter(self._cached))]


def _ended(story: Story[Any], found: Iterable[StoredEvent], jobs: Jobs) -> bool:
    """Fold what was found; whether the job has ended with it."""
    for stored in found:
        story.fold(typed(stored, jobs.blobs), stored.sum)
        if story.view.over:
            return True
    return False
