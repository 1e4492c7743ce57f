"""The documents as the log alone has them: written anew, or compared with those on disk (docs/design.md §7). One run at
a time, whatever the length of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from pmagent.contracts.content import whole
from pmagent.events.event import StoredEvent
from pmagent.events.evidence import log_of
from pmagent.events.named_blobs import BlobCheck
from pmagent.projections.core.disk import Desk, Difference, note_halts
from pmagent.projections.core.documents import Documents, Taken, computed, folded
from pmagent.projections.core.projection import Halt, ProjectionHalted
from pmagent.projections.registry import all_projections


def documents_of(workspace: Path, until: int | None = None) -> dict[str, bytes]:
    """All of the workspace's documents at once, rebuilt from its log: for small ones. Raises NotFound, CorruptLog,
    ProjectionHalted."""
    blobs, documents, given = log_of(workspace).blobs(), Documents(all_projections()), dict[str, bytes]()
    for found in parts_of(workspace, documents, until):
        given.update({path: whole(content, blobs) for path, content in computed(found).items()})
    for halt in documents.halted.values():
        raise ProjectionHalted(halt)
    return given


def check_documents(workspace: Path, blobs: BlobCheck | None = None) -> list[Difference]:
    """Each document of the log that is not on disk as it must be, and each projection whose documents are unknown
    because it is halted; ``blobs`` also checks each blob that the log names. Raises NotFound, CorruptLog."""
    desk, documents = Desk(workspace, log_of(workspace).blobs()), Documents(all_projections())
    wrong: dict[str, Difference] = {}

    def hear(run: Sequence[StoredEvent]) -> None:
        if blobs is not None:
            for event in run:
                blobs.look(event)

    for found in parts_of(workspace, documents, hear=hear):
        for path, difference in desk.differences(found):
            wrong.pop(path, None)  # of a path that comes twice, the later counts
            if difference is not None:
                wrong[path] = difference
    return [*map(_halted, documents.halted.values()), *wrong.values()]


def _halted(halt: Halt) -> Difference:
    return Difference(halt.projection, "halted", halt.since, found=f"{halt.error} in {halt.place}")


def rewrite_documents(workspace: Path, documents: Documents | None = None) -> Iterator[tuple[str, bool]]:
    """Write what is not on disk as the log says; each document's path, and whether it was written. ``documents`` have
    folded nothing yet, and know afterwards which projections are halted: their documents are left as they are. Raises
    NotFound, CorruptLog, DocumentUnwritable; ContentLost, when all others have been written."""
    desk = Desk(workspace, log_of(workspace).blobs())
    documents = documents or Documents(all_projections())
    for found in parts_of(workspace, documents):
        written = set(desk.write(found))
        for path, part in found.items():
            if part.guard is None or not part.guard.halted:
                yield path, path in written
    note_halts(workspace, list(documents.halted.values()))
    if desk.lost:
        raise next(iter(desk.lost.values()))


def parts_of(
    workspace: Path, documents: Documents, until: int | None = None,
    hear: Callable[[Sequence[StoredEvent]], None] = lambda _: None,
) -> Iterator[Taken]:  # fmt: skip
    """What ``pmagent.projections.core.documents.folded`` gives of the workspace's log."""
    store = log_of(workspace)
    with closing(store.reader()) as storage:
        yield from folded(storage, documents, store.blobs(), until, hear)
