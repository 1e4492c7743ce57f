"""Reading a log into actors and documents: at a start, beside a live host, or only to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path

from pmagent.actors.core.engine import Engine
from pmagent.actors.registry import all_actors
from pmagent.contracts.payload import typed
from pmagent.events.ahead import long_runs
from pmagent.events.errors import NotFound
from pmagent.events.event import Tail
from pmagent.events.log import now
from pmagent.events.reader import collector_at_rest
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Blobs, StorageReader
from pmagent.projections.core.documents import Documents, Taken, pruned_jobs
from pmagent.projections.registry import all_projections
from pmagent.service.cache import load
from pmagent.service.open_work import open_work
from pmagent.service.writing import OldDocuments
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import snapshot_digest


def fold_into(
    storage: StorageReader, engine: Engine, documents: Documents, blobs: Blobs, start: int,
    retired: Callable[[Taken], None] = lambda _: None, until: int | None = None,
) -> None:
    """Fold what the log holds behind position ``start``, up to ``until``. ``retired`` is given the documents that leave
    the fold meanwhile. Raises CorruptLog, NotFound (a blob), HistoryError."""
    fold = engine.fold
    documents.leave_out(pruned_jobs(storage, blobs, start + 1))
    with collector_at_rest(), closing(long_runs(storage, start + 1, until)) as read:
        for run in read:
            events = [typed(stored, blobs) for stored in run]
            documents.fold(events, [stored.sum for stored in run])
            for event in events:
                fold(event)
            retired(documents.take_retired())


class Folded:
    """The actors and documents of a log, from the snapshot on whose SHA-256 is ``digest`` ("": from its beginning);
    ``old`` writes the documents that are no part of the state any more. Raises what ``fold_into`` raises."""

    def __init__(self, layout: Layout, digest: str, log_id: str, storage: StorageReader, blobs: Blobs) -> None:
        self.engine, self.documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
        self.old = OldDocuments(layout.workspace, blobs)
        self._blobs = blobs
        self._position = load(layout.snapshot, digest, log_id, storage, self.engine, self.documents)

    def fold(self, storage: StorageReader, until: int) -> None:
        """Fold what the log holds up to position ``until``."""
        if until > self._position:
            fold_into(storage, self.engine, self.documents, self._blobs, self._position, self.old.write, until)
            self._position = until


def work_in(layout: Layout) -> list[str]:
    """The open work in the workspace's log as it lies there; no cache of its state is believed. Raises CorruptLog,
    HistoryError."""
    engine, documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
    store = layout.store
    with closing(store.reader()) as storage:
        fold_into(storage, engine, documents, store.blobs(), 0)
    return open_work(engine, now())


followed: ContextVar[tuple[Engine, str, Tail] | None] = ContextVar("followed", default=None)
"""The answer of ``folded`` in a process that follows the log, and has folded it already."""


@contextmanager
def folded(workspace: Path) -> Iterator[tuple[Engine, str, Tail]]:
    """The actors as the log has them, its id and its end; without a log as they begin, and "". Nothing is written.
    Raises CorruptLog, HistoryError."""
    if (found := followed.get()) is not None:
        yield found
        return
    layout = Layout(workspace)
    store = layout.store
    engine, documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
    try:
        storage = store.reader()
    except NotFound:
        yield engine, "", Tail()
        return
    with closing(storage):
        start = load(layout.snapshot, snapshot_digest(layout), storage.log_id(), storage, engine, documents)
        fold_into(storage, engine, documents, store.blobs(), start)
        yield engine, storage.log_id(), storage.tail()
