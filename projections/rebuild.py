"""The documents as the log alone has them: written anew, or compared with those on disk (docs/design.md §7). One run at
a time, whatever the length of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from pmagent.contracts.content import BlobContent
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.otherwise import Entry, Listed, Otherwise, counted, later
from pmagent.contracts.payload import typed
from pmagent.events.event import StoredEvent
from pmagent.events.evidence import log_of
from pmagent.events.named_blobs import BlobCheck
from pmagent.events.tree import LeadsOut
from pmagent.projections.core.disk import Difference, DocumentStore, note_halts
from pmagent.projections.core.documents import Documents, Taken, folded
from pmagent.projections.core.projection import Halt, Part
from pmagent.projections.registry import all_projections


def check_documents(
    workspace: Path, blobs: BlobCheck | None = None, listed: ListedCheck | None = None
) -> list[Difference]:
    """Each document of the log that is not on disk as it must be, and each projection whose documents are unknown
    because it is halted; ``blobs`` also checks each blob that the log names. Differences that ``listed`` covers are in
    its result instead. Raises NotFound, CorruptLog."""
    store, documents = DocumentStore(workspace, log_of(workspace).blobs()), Documents(all_projections())
    wrong: dict[str, Difference] = {}

    def hear(run: Sequence[StoredEvent]) -> None:
        for event in run:
            if blobs is not None:
                blobs.look(event)
            if listed is not None:
                listed.hear(event)

    for found in parts_of(workspace, documents, hear=hear):
        for path, difference in store.differences(found):
            wrong.pop(path, None)  # of a path that comes twice, the later counts
            if difference is not None:
                wrong[path] = difference
            if listed is not None:
                listed.look(store, path, difference, found[path])
    if listed is not None:
        for path in listed.settle():
            wrong.pop(path, None)
    return [*map(_halted, documents.halted.values()), *wrong.values()]


class ListedCheck:
    """Documents on disk that differ from the log as a release later than the one that wrote them lists. It is the one
    that went live on the log last: each start brings every document up to date."""

    def __init__(self, otherwise: Otherwise) -> None:
        self._otherwise = otherwise
        self._version = ""
        self._found: dict[str, tuple[Entry, ...]] = {}
        self.result: list[Listed] = []

    def hear(self, event: StoredEvent) -> None:
        """Take an event of the log. Raises CorruptLog."""
        if event.type == "daemon.started" and event.kind == "fact":
            data = typed(event).data
            self._version = data.version if isinstance(data, DaemonStarted) else ""

    def look(self, store: DocumentStore, path: str, difference: Difference | None, part: Part) -> None:
        """Take what was found of a document; the last time counts."""
        self._found.pop(path, None)
        if difference is None or difference.state not in ("differs", "missing"):
            return
        if not self._otherwise.lists_document(path):
            return
        content = part.guarded(part.content, None)
        if content is None or isinstance(content, BlobContent):
            return
        now = content if isinstance(content, bytes) else b"".join(content.pieces())
        try:
            found = None if difference.state == "missing" else store.found(path, part)
        except (OSError, LeadsOut):  # it was there a moment ago; the difference stands
            return
        self._found[path] = self._otherwise.document(path, found, now)

    def settle(self) -> list[str]:
        """At the log's end: the documents that are covered, which the result counts."""
        covered = {
            path: entries for path, entries in self._found.items()
            if entries and all(later(entry, self._version) for entry in entries)
        }
        self.result = counted(Counter(entry for entries in covered.values() for entry in entries))
        return list(covered)


def _halted(halt: Halt) -> Difference:
    return Difference(halt.projection, "halted", halt.since, found=f"{halt.error} in {halt.place}")


def rewrite_documents(workspace: Path, documents: Documents | None = None) -> Iterator[tuple[str, bool]]:
    """Write what is not on disk as the log says; each document's path, and whether it was written. ``documents`` have
    folded nothing yet, and know afterwards which projections are halted: their documents are left as they are. Raises
    NotFound, CorruptLog, DocumentUnwritable; ContentLost, when all others have been written."""
    store = DocumentStore(workspace, log_of(workspace).blobs())
    documents = documents or Documents(all_projections())
    for found in parts_of(workspace, documents):
        written = set(store.write(found))
        for path, part in found.items():
            if part.gone and path not in written:
                continue
            if part.guard is None or not part.guard.halted:
                yield path, path in written
    note_halts(workspace, list(documents.halted.values()))
    if store.lost:
        raise next(iter(store.lost.values()))


def parts_of(
    workspace: Path, documents: Documents, until: int | None = None,
    hear: Callable[[Sequence[StoredEvent]], None] = lambda _: None,
) -> Iterator[Taken]:  # fmt: skip
    """The documents of the workspace's log, by ``pmagent.projections.core.documents.folded``."""
    store = log_of(workspace)
    with closing(store.reader()) as storage:
        yield from folded(storage, documents, store.blobs(), until, hear)
