"""The documents of a log: all projections folded together, live or from the beginning (DESIGN §4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from contracts.payload import BlobSource, typed
from events.event import Event
from events.reader import runs
from events.storage import StorageReader
from projections.projection import AnyProjection


class Documents:
    """Folds durable events for every projection, and remembers whose documents may have changed."""

    def __init__(self, projections: Sequence[AnyProjection]) -> None:
        self._projections = list(projections)
        self._states: dict[str, Any] = {p.name: p.initial() for p in self._projections}
        self._hearers: dict[type, list[AnyProjection]] = {}
        for projection in self._projections:
            for cls in projection.hears:
                self._hearers.setdefault(cls, []).append(projection)
        self._changed: set[str] = set(self._states)

    def fold(self, events: Sequence[Event], sums: Sequence[str]) -> bool:
        """Take durable events with their sums; whether any document may have changed."""
        changed = False
        for event, sum_ in zip(events, sums, strict=True):
            for projection in self._hearers.get(type(event.data), ()):
                before = self._states[projection.name]
                after = projection.evolve(before, event, sum_)
                if after is not before:
                    self._states[projection.name] = after
                    self._changed.add(projection.name)
                    changed = True
        return changed

    def take_changed(self) -> dict[str, bytes]:
        """The documents of the projections that changed since the last call, rendered."""
        found: dict[str, bytes] = {}
        for projection in self._projections:
            if projection.name in self._changed:
                found.update(projection.render(self._states[projection.name]))
        self._changed.clear()
        return found

    def doubt(self) -> None:
        """Take every document for changed: what is on disk is not known."""
        self._changed.update(self._states)

    def render(self) -> dict[str, bytes]:
        """All documents."""
        found: dict[str, bytes] = {}
        for projection in self._projections:
            found.update(projection.render(self._states[projection.name]))
        return found

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


def rebuild(
    storage: StorageReader, projections: Sequence[AnyProjection], blobs: BlobSource | None, until: int | None = None
) -> dict[str, bytes]:
    """The documents as of position ``until`` (default: the tail), from the log alone. Raises CorruptLog, NotFound."""
    documents = Documents(projections)
    for run in runs(storage, 1, until):
        documents.fold([typed(stored, blobs) for stored in run], [stored.sum for stored in run])
    return documents.render()
