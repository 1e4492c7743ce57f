"""Opening a log for reading, and its lines as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import StoredEvent
from pmagent.events.evidence import FOLDER, log_in, log_of
from pmagent.events.line import decode_line
from pmagent.events.reader import runs
from pmagent.events.storage import CHUNK_BYTES, StorageReader
from pmagent.events.store import LogStore
from pmagent.workspace.layout import Layout


def store_at(path: Path) -> LogStore:
    """The store of the log in ``path``: a log's own folder, a workspace, or its ``.pmagent``.

    Raises NotFound; LogGone where documents of the workspace tell of a log."""
    workspace = path.absolute().parent if path.name == FOLDER else path
    for store in (log_in(path), log_of(workspace), log_in(path / "log")):
        if store.exists():
            return store
    from pmagent.workspace.presence import log_gone

    if (gone := log_gone(Layout(workspace))) is not None:
        raise gone
    raise NotFound(f"there is no log in {path}", "pmagent init makes a workspace, pmagent up starts its log")


class Tapped:
    """A StorageReader that remembers the bytes it handed out last, so that an event's line is at hand unchanged."""

    def __init__(self, storage: StorageReader) -> None:
        self._storage = storage
        self._chunk = b""
        self.reads_files = storage.reads_files
        self.tail, self.location, self.changes = storage.tail, storage.location, storage.changes

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        chunk = self._storage.read(position, bytes_max)
        if chunk:
            self._chunk = chunk
        return chunk

    def lines(self, count: int) -> list[bytes]:
        """The first ``count`` lines of what was read last, without their newlines."""
        return self._chunk.split(b"\n", count)[:count]

    def run_bytes(self, count: int) -> bytes:
        """The same lines as one run of bytes, newlines included."""
        end = -1
        for _ in range(count):
            end = self._chunk.index(b"\n", end + 1)
        return self._chunk[: end + 1]


def line_runs(
    storage: StorageReader, position: int = 1, until: int | None = None
) -> Iterator[tuple[Sequence[StoredEvent], Tapped]]:
    """Checked runs of events up to ``until``, each with the tap that holds its bytes. Raises CorruptLog."""
    tap = Tapped(storage)
    for run in runs(tap, position, until):
        yield run, tap


def time_at(storage: StorageReader, position: int) -> str:
    """The time that the line at ``position`` claims. Raises CorruptLog when it is no event."""
    line = storage.read(position, 1)
    try:
        return decode_line(line.rstrip(b"\n")).time
    except msgspec.DecodeError as error:
        file, offset = storage.location(position)
        raise CorruptLog(file, offset, position, f"not an event: {error}") from error


def position_at_time(storage: StorageReader, time: str, low: int = 1, high: int = 0) -> int:
    """The first position from ``low`` on whose time is not before ``time``; ``high`` (0: behind the tail) when there is
    none."""
    high = high or storage.tail().position + 1
    while low < high:
        middle = (low + high) // 2
        if time_at(storage, middle) < time:
            low = middle + 1
        else:
            high = middle
    return low
