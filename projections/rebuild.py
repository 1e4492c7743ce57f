"""The documents as the log alone has them: written anew, or compared with those on disk (``pmagent rebuild``,
DESIGN §4). One run at a time, whatever the length of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contracts.content import whole
from events.blobs import BlobStore
from events.disk import RealDisk
from events.event import StoredEvent
from events.named_blobs import BlobCheck
from events.segments import SegmentReader
from projections.disk import Desk, Difference
from projections.documents import Taken, folded
from projections.registry import all_projections


def documents_of(workspace: Path, until: int | None = None) -> dict[str, bytes]:
    """All of the workspace's documents at once, rebuilt from its log: for small ones. Raises NotFound, CorruptLog."""
    blobs = blobs_of(workspace)
    return {path: whole(part.content(), blobs) for found in parts_of(workspace, until) for path, part in found.items()}


def check_documents(workspace: Path, blobs: BlobCheck | None = None) -> list[Difference]:
    """Each document of the log that is not on disk as it must be; ``blobs`` also checks each blob that the log names.
    Raises NotFound, CorruptLog."""
    desk = Desk(workspace, blobs_of(workspace))
    wrong: dict[str, Difference] = {}

    def hear(run: Sequence[StoredEvent]) -> None:
        if blobs is not None:
            for event in run:
                blobs.look(event)

    for documents in parts_of(workspace, hear=hear):
        for path, difference in desk.differences(documents):
            wrong.pop(path, None)  # of a path that comes twice, the later counts
            if difference is not None:
                wrong[path] = difference
    return list(wrong.values())


def rewrite_documents(workspace: Path) -> Iterator[tuple[str, bool]]:
    """Write what is not on disk as the log says; each document's path, and whether it was written. Raises NotFound,
    CorruptLog, DocumentUnwritable; ContentLost, when all others have been written."""
    desk = Desk(workspace, blobs_of(workspace))
    for documents in parts_of(workspace):
        written = set(desk.write(documents))
        for path in documents:
            yield path, path in written
    if desk.lost:
        raise next(iter(desk.lost.values()))


def parts_of(
    workspace: Path, until: int | None = None, hear: Callable[[Sequence[StoredEvent]], None] = lambda _: None
) -> Iterator[Taken]:
    """What ``projections.documents.folded`` gives of the workspace's log."""
    storage = SegmentReader(RealDisk(), str(workspace / ".pmagent" / "log"))
    try:
        yield from folded(storage, all_projections(), blobs_of(workspace), until, hear)
    finally:
        storage.close()


def blobs_of(workspace: Path) -> BlobStore:
    """The workspace's blobs."""
    return BlobStore(RealDisk(), str(workspace / ".pmagent" / "blobs"))
