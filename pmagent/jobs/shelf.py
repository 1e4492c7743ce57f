"""The last few jobs that were looked at, folded as far as the log goes: looking again costs what is new
(docs/design.md §7)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from pmagent.contracts.payload import typed
from pmagent.events.event import Event, StoredEvent, Tail
from pmagent.events.reader import event_at
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import Kind
from pmagent.jobs.sifting import sifted, stands
from pmagent.jobs.story import Story
from pmagent.workspace.layout import Layout

STORIES_KEPT: Final = 8
WEIGHT_KEPT: Final = 30_000
"""Fewer stay where they weigh more than this together (tasks; pieces of evidence); the newest always stays."""


S = TypeVar("S", bound=Story[Any])


class _Held(Generic[S]):
    """A story, and where it goes on: ``after`` is the last position that was read for it."""

    def __init__(self, log_id: str, requested: int, story: S) -> None:
        self.log_id = log_id
        self.requested = requested
        self.story = story
        self.after = requested
        self.tail = Tail()
        """The log's end when it was read last."""


class Shelf(Generic[S]):
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
        self._held: dict[str, _Held[S]] = {}
        """The last that was looked at comes last."""
        self._lock = threading.Lock()

    @contextmanager
    def story(self, job_id: str) -> Iterator[tuple[S, Jobs]]:
        """The job with this whole id as the log has it now, and the log; nobody else has the story meanwhile.

        Raises NoSuchJob, CorruptLog; NotFound where there is no log.
        """
        asked = self._catalogue.called([self.kind], job_id)
        with self._lock, opened(self._layout) as jobs:
            held = self._up_to_date(jobs, job_id, asked.position)
            yield held.story, jobs

    def _up_to_date(self, jobs: Jobs, job_id: str, position: int) -> _Held[S]:
        log_id = jobs.storage.log_id()
        held, tail = self._held.pop(job_id, None), jobs.storage.tail()
        if held is None or (held.log_id, held.requested) != (log_id, position) or not stands(jobs.storage, held.tail):
            stored = event_at(jobs.storage, position)
            held = _Held(log_id, position, self._begun(typed(stored, jobs.blobs), stored.sum))
        self._go_on(jobs, held, job_id, tail.position)  # what fails here is begun anew the next time
        held.tail = tail
        self._held[job_id] = held
        self._make_room()
        return held

    def _go_on(self, jobs: Jobs, held: _Held[S], job_id: str, end: int) -> None:
        if held.story.view.over:
            return
        wanted = re.compile(re.escape(b'"correlation":"%s"' % job_id.encode()))
        for events, last in sifted(jobs.storage, wanted, held.after + 1, end):
            mine = (stored for stored in events if stored.correlation == job_id)
            if _ended(held.story, mine, jobs):
                return
            held.after = last

    def _make_room(self) -> None:
        while len(self._held) > 1 and (
            len(self._held) > self._kept or sum(one.story.weight for one in self._held.values()) > self._weight
        ):
            del self._held[next(iter(self._held))]


def _ended(story: Story[Any], found: Iterable[StoredEvent], jobs: Jobs) -> bool:
    """Fold what was found; whether the job has ended with it."""
    for stored in found:
        story.fold(typed(stored, jobs.blobs), stored.sum)
        if story.view.over:
            return True
    return False
