"""The documents of a log: all projections folded together, live or from the beginning (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from contracts.content import Content
from contracts.payload import BlobSource, typed
from events.event import Event, StoredEvent
from events.reader import runs
from events.storage import StorageReader
from projections.projection import AnyProjection, Part

Taken = dict[str, Part]
"""Documents that may have changed: path -> how each is computed. Of one path, the newest."""


class Documents:
    """Folds durable events for every projection, and remembers which documents may have changed.

    What projections retire is kept until it is taken: so whoever folds a log of any length takes in between.
    """

    def __init__(self, projections: Sequence[AnyProjection]) -> None:
        self._projections = list(projections)
        self._states: dict[str, Any] = {p.name: p.initial() for p in self._projections}
        self._hearers: dict[type, list[AnyProjection]] = {}
        for projection in self._projections:
            for cls in projection.hears:
                self._hearers.setdefault(cls, []).append(projection)
        self._taken: dict[str, Any] = {}
        """The states that the documents taken so far show; none where that is not known."""
        self._retired: Taken = {}
        self._in_hand: Taken = {}

    def fold(self, events: Sequence[Event], sums: Sequence[str]) -> bool:
        """Take durable events with their sums; whether any document may have changed."""
        changed = False
        for event, sum_ in zip(events, sums, strict=True):
            for projection in self._hearers.get(type(event.data), ()):
                before = self._states[projection.name]
                after = projection.evolve(before, event, sum_)
                if after is not before:
                    self._states[projection.name] = self._without_old(projection, after)
                    changed = True
        return changed

    def _without_old(self, projection: AnyProjection, state: Any) -> Any:
        kept = projection.retire(state)
        if kept is not state:
            gone = projection.documents(state, kept)
            taken = self._taken.get(projection.name)
            if taken is not None:  # what has been taken as it is needs no second look
                changed = projection.documents(state, taken)
                gone = {path: part for path, part in gone.items() if path in changed}
            self._retired.update(gone)
        return kept

    def take(self) -> Taken:
        """The documents that may have changed since the last call. They count as owed until ``settle``."""
        found = {**self._in_hand, **self._retired}
        for projection in self._projections:
            state = self._states[projection.name]
            since = self._taken.get(projection.name)
            if state is not since:
                found.update(projection.documents(state, since))
                self._taken[projection.name] = state
        self._in_hand, self._retired = {**self._in_hand, **self._retired}, {}
        return found

    def take_retired(self) -> Taken:
        """What has been retired since the last call, for who goes through a whole log; not owed any more."""
        found = {**self._in_hand, **self._retired}
        self._in_hand, self._retired = {}, {}
        return found

    def settle(self) -> None:
        """What was taken last is on disk."""
        self._in_hand = {}

    def doubt(self) -> None:
        """Take every document for changed: what is on disk is not known."""
        self._taken.clear()

    @property
    def owing(self) -> bool:
        """Whether documents that are in no state any more may not be on disk yet: a snapshot would lose them."""
        return bool(self._retired or self._in_hand)

    def take_changed(self) -> dict[str, Content]:
        """``take``, computed."""
        return computed(self.take())

    def every(self) -> Taken:
        """All documents but those that have been retired."""
        found: Taken = {}
        for projection in self._projections:
            found.update(projection.documents(self._states[projection.name], None))
        return found

    def render(self) -> dict[str, Content]:
        """``every``, computed."""
        return computed(self.every())

    def export(self) -> dict[str, bytes]:
        """The folds, for the snapshot cache."""
        return {name: msgspec.json.encode(state) for name, state in self._states.items()}

    def decoded(self, exported: dict[str, bytes]) -> dict[str, Any]:
        """Folds from the cache, for ``restore``. Raises KeyError, msgspec.ValidationError when they do not fit."""
        if exported.keys() != self._states.keys():
            raise KeyError("other projections")
        return {name: msgspec.json.decode(raw, type=type(self._states[name])) for name, raw in exported.items()}

    def restore(self, states: dict[str, Any]) -> None:
        """Take what ``decoded`` gave."""
        self._states = dict(states)
        self.doubt()


def computed(documents: Taken) -> dict[str, Content]:
    """Path -> content."""
    return {path: part.content() for path, part in documents.items()}


def folded(
    storage: StorageReader, projections: Sequence[AnyProjection], blobs: BlobSource | None, until: int | None = None,
    hear: Callable[[Sequence[StoredEvent]], None] = lambda _: None,
) -> Iterator[Taken]:  # fmt: skip
    """The documents as of position ``until`` (default: the tail), from the log alone, a part at a time: of a path that
    comes twice, the later one counts. ``hear`` is given the events as they are read. Raises CorruptLog, NotFound."""
    documents = Documents(projections)
    for run in runs(storage, 1, until):
        hear(run)
        documents.fold([typed(stored, blobs) for stored in run], [stored.sum for stored in run])
        old = documents.take_retired()
        if old:
            yield old
    yield documents.every()


def rebuild(
    storage: StorageReader, projections: Sequence[AnyProjection], blobs: BlobSource | None, until: int | None = None
) -> dict[str, Content]:
    """All of ``folded`` at once: for small logs."""
    found: dict[str, Content] = {}
    for part in folded(storage, projections, blobs, until):
        found.update(computed(part))
    return found
