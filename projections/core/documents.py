"""The documents of a log: all projections folded together, live or from the beginning (docs/design.md §7).

A projection that raises is halted alone, like an actor: it folds nothing more and none of its documents is written any
more; those on disk stay as they are, and are reported as stale. Documents follow from the log, so a halt is no event:
the next start folds everything anew, and with a version that does not fail all is as it should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from pmagent.actors.core.integrity import describe_failure
from pmagent.actors.core.snapshot import EXPORTED_BYTES_MAX
from pmagent.contracts.content import Content
from pmagent.contracts.control import Pruned, PruneEnded
from pmagent.contracts.payload import BlobSource, typed
from pmagent.events.event import Event, StoredEvent
from pmagent.events.reader import events_of_types, runs
from pmagent.events.storage import StorageReader
from pmagent.projections.core.projection import AnyProjection, Halt, Part, ProjectionHalted

Taken = dict[str, Part]
"""Documents that may have changed: path -> how each is computed. Of one path, the newest."""


class _Guard:
    """See pmagent.projections.core.projection.Guard."""

    def __init__(self, documents: Documents, name: str) -> None:
        self._documents = documents
        self.name = name

    @property
    def halted(self) -> bool:
        """See Guard."""
        return self.name in self._documents.halted

    def halt(self, error: Exception) -> None:
        """See Guard."""
        self._documents.halt(self.name, error)


class Documents:
    """Folds durable events for every projection, and remembers which documents may have changed.

    Retired documents are kept until they are taken, so a caller that folds a long log must take in between.
    """

    def __init__(self, projections: Sequence[AnyProjection]) -> None:
        self._projections = list(projections)
        self.halted: dict[str, Halt] = {}
        """The halted projections, by name."""
        self.names = [p.name for p in self._projections]
        self.on_halt: Callable[[Halt], None] = lambda _: None
        """Called when one is halted, by whatever thread finds it."""
        self._position = 0
        self._guards = {p.name: _Guard(self, p.name) for p in self._projections}
        self._states: dict[str, Any] = {p.name: p.initial() for p in self._projections}
        self._subscribers: dict[type, list[AnyProjection]] = {}
        for projection in self._projections:
            for cls in projection.hears:
                self._subscribers.setdefault(cls, []).append(projection)
        self._taken: dict[str, Any] = {}
        """The states that the documents taken so far show; none where that is not known."""
        self._exported: dict[str, tuple[Any, bytes]] = {}
        """The smaller states as they were exported last; most are the same at the next snapshot."""
        self._retired: Taken = {}
        self._in_hand: Taken = {}
        self.pruning: dict[int, Pruned] = {}
        """Pruned jobs whose files are not known to be removed yet, by position."""
        self._pruned: frozenset[str] = frozenset()

    def state(self, name: str) -> Any:
        """The state of the projection ``name``, as of the last event folded."""
        return self._states[name]

    def leave_out(self, pruned: frozenset[str]) -> None:
        """Give out no documents of these jobs: an event that comes says that they are pruned."""
        self._pruned = pruned

    def fold(self, events: Sequence[Event], sums: Sequence[str]) -> bool:
        """Take durable events with their sums; whether any document may have changed."""
        changed = False
        for event, sum_ in zip(events, sums, strict=True):
            self._position = event.position
            for projection in self._subscribers.get(type(event.data), ()):
                before = self._states[projection.name]
                try:
                    after = projection.evolve(before, event, sum_)
                    if after is not before:
                        self._states[projection.name] = self._without_old(projection, after)
                        changed = True
                except Exception as error:  # noqa: BLE001 - it halts that projection, and only it
                    self.halt(projection.name, error)
                    changed = True  # which is to be told on disk
            if isinstance(event.data, Pruned) and event.kind == "fact":
                self.pruning[event.position] = event.data
                for job in event.data.jobs:
                    self._retired.update({path: Part(bytes, (), job.job_id, None, gone=True) for path in job.paths})
                changed = True
            elif isinstance(event.data, PruneEnded):
                self.pruning.pop(event.data.pruned, None)
        return changed

    def follow(self, other: Documents) -> None:
        """Know, as a new one, what ``other`` does, whose documents nobody has taken; each goes on by itself, for states
        are immutable. Raises ValueError for one that has taken, or halted, something."""
        if other.halted or other._taken or other._in_hand:
            raise ValueError("documents that were taken, or are halted, cannot be followed")
        self._states, self._position = dict(other._states), other._position
        self.pruning, self._pruned = dict(other.pruning), other._pruned
        self._retired = {
            path: part if part.guard is None else part._replace(guard=self._guards[part.guard.name])
            for path, part in other._retired.items()
        }

    def halt(self, name: str, error: Exception) -> None:
        """Halt a projection because of what its code raised; nothing happens when it is halted already."""
        if name in self.halted:
            return
        kind, place = describe_failure(error)
        halt = self.halted[name] = Halt(name, self._position, kind, place)
        self._projections = [one for one in self._projections if one.name != name]
        for cls, subscribers in list(self._subscribers.items()):
            self._subscribers[cls] = [one for one in subscribers if one.name != name]
        self.on_halt(halt)

    def _documents(self, projection: AnyProjection, state: Any, since: Any) -> Taken:
        guard = self._guards[projection.name]
        found = projection.documents(state, since)
        return {
            path: Part(part.render, part.given, part.owner, guard)
            for path, part in found.items()
            if part.owner not in self._pruned
        }

    def _documents_or_halt(self, projection: AnyProjection, state: Any, since: Any) -> Taken:
        try:
            return self._documents(projection, state, since)
        except Exception as error:  # noqa: BLE001 - as in fold
            self.halt(projection.name, error)
            return {}

    def _without_old(self, projection: AnyProjection, state: Any) -> Any:
        kept = projection.retire(state)
        if kept is not state:
            gone = self._documents(projection, state, kept)
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
                found.update(self._documents_or_halt(projection, state, since))
                self._taken[projection.name] = state
        self._in_hand, self._retired = {**self._in_hand, **self._retired}, {}
        return found

    def take_retired(self) -> Taken:
        """The documents retired since the last call, for callers that fold a whole log; not owed any more."""
        found = {**self._in_hand, **self._retired}
        self._in_hand, self._retired = {}, {}
        return found

    def settle(self) -> None:
        """The documents taken last are on disk."""
        self._in_hand = {}

    def doubt(self) -> None:
        """Take every document for changed: what is on disk is not known."""
        self._taken.clear()

    @property
    def owing(self) -> bool:
        """Whether documents that are in no state any more may not be on disk yet, or what was pruned may still be
        there: a snapshot would lose that."""
        return bool(self._retired or self._in_hand or self.pruning)

    def take_changed(self) -> dict[str, Content]:
        """``take``, computed."""
        return computed(self.take())

    def every(self) -> Taken:
        """All documents but those that have been retired."""
        found: Taken = {}
        for projection in self._projections:
            found.update(self._documents_or_halt(projection, self._states[projection.name], None))
        return found

    def render(self) -> dict[str, Content]:
        """``every``, computed."""
        return computed(self.every())

    def export(self) -> dict[str, bytes]:
        """The folds, for the snapshot cache. Raises ProjectionHalted: the state of a halted one is not the log's."""
        folds: dict[str, bytes] = {}
        for name, state in self._states.items():
            try:
                known, raw = self._exported.get(name, (None, b""))
                folds[name] = raw = raw if known is state else msgspec.json.encode(state)
                if len(raw) <= EXPORTED_BYTES_MAX:
                    self._exported[name] = state, raw
            except Exception as error:  # noqa: BLE001 - as in fold
                self.halt(name, error)
        for halt in self.halted.values():
            raise ProjectionHalted(halt)
        return folds

    def decoded(self, exported: dict[str, bytes]) -> dict[str, Any]:
        """Folds from the cache, for ``restore``. Raises KeyError, msgspec.ValidationError when they do not fit."""
        if exported.keys() != self._states.keys():
            raise KeyError("other projections")
        return {name: msgspec.json.decode(raw, type=type(self._states[name])) for name, raw in exported.items()}

    def restore(self, states: dict[str, Any], position: int = 0) -> None:
        """Take what ``decoded`` gave, of the log up to ``position``."""
        self._states = dict(states)
        self._position = position
        self.doubt()


def pruned_jobs(storage: StorageReader, blobs: BlobSource | None, start: int = 1) -> frozenset[str]:
    """The jobs that events from ``start`` on prune. Raises CorruptLog, NotFound."""
    found: set[str] = set()
    for stored in events_of_types(storage, start, ("control.pruned",)):
        if stored.kind == "fact":
            data = typed(stored, blobs).data
            found.update(job.job_id for job in data.jobs if isinstance(data, Pruned))
    return frozenset(found)


def computed(documents: Taken) -> dict[str, Content]:
    """Path -> content; without those of halted projections."""
    found = {path: part.guarded(part.content, None) for path, part in documents.items() if not part.gone}
    return {path: content for path, content in found.items() if content is not None}


def folded(
    storage: StorageReader, documents: Documents, blobs: BlobSource | None, until: int | None = None,
    hear: Callable[[Sequence[StoredEvent]], None] = lambda _: None,
) -> Iterator[Taken]:  # fmt: skip
    """The documents as of position ``until`` (default: the tail), from the log alone, a part at a time: of a path that
    comes twice, the later one counts. ``documents`` have folded nothing yet; they know afterwards which projections are
    halted. ``hear`` is given the events as they are read. Raises CorruptLog, NotFound."""
    documents.leave_out(pruned_jobs(storage, blobs))
    for run in runs(storage, 1, until):
        hear(run)
        documents.fold([typed(stored, blobs) for stored in run], [stored.sum for stored in run])
        if old := documents.take_retired():
            yield old
    yield documents.every()
