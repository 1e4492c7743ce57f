"""Opening a log for reading, and its lines as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from events.disk import RealDisk
from events.errors import CorruptLog, NotFound
from events.event import StoredEvent, Tail
from events.evidence import FOLDER, evidence, holds_log
from events.head import NAME as HEAD_NAME
from events.line import decode_line
from events.reader import RUN_BYTES, runs
from events.segments import SegmentReader
from events.storage import CHUNK_BYTES, StorageReader
from pmagent.layout import Layout


def log_folder(path: Path) -> Path:
    """The folder with the segments: ``path`` itself, or the log of the workspace ``path``, or of its ``.pmagent``.

    Raises NotFound; LogGone where documents of the workspace tell of a log."""
    workspace = path.absolute().parent if path.name == FOLDER else path
    for folder in (path, evidence(workspace).log, path / "log"):
        if holds_log(folder):
            return folder
    from pmagent.workspace.presence import log_gone

    gone = log_gone(Layout(workspace))
    if gone is not None:
        raise gone
    raise NotFound(f"there is no log in {path}", "pmagent init makes a workspace, pmagent up starts its log")


@contextmanager
def opened(folder: Path) -> Iterator[SegmentReader]:
    """The log in ``folder``, for reading; nothing is written. Raises NotFound; CorruptLog where there are segments, but
    no HEAD."""
    try:
        storage = SegmentReader(RealDisk(), str(folder))
    except NotFound:
        if any(folder.glob("*.jsonl")):
            raise CorruptLog(HEAD_NAME, 0, 0, "it is missing, so it is unknown what was durable") from None
        raise
    try:
        yield storage
    finally:
        storage.close()


class Tapped:
    """A StorageReader that remembers the bytes it handed out last, so that an event's line is at hand unchanged."""

    def __init__(self, storage: StorageReader) -> None:
        self._storage = storage
        self._chunk = b""

    def tail(self) -> Tail:
        """See StorageReader."""
        return self._storage.tail()

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        chunk = self._storage.read(position, bytes_max)
        if chunk:
            self._chunk = chunk
        return chunk

    def place(self, position: int) -> tuple[str, int]:
        """See StorageReader."""
        return self._storage.place(position)

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


Needles = Sequence[Sequence[bytes]]
"""What the bytes of a wanted line hold: of each of these, at least one."""


def sifted(
    storage: StorageReader, position: int, until: int, needles: Needles
) -> Iterator[tuple[Sequence[StoredEvent], int]]:
    """Checked runs of events from ``position`` up to ``until``, each with how far it goes, without runs in whose bytes
    the ``needles`` are not: of those only how far they go. They are neither decoded nor even checked, which is most of
    the work: who looks for everything that there is gives no needles. Raises CorruptLog."""
    while position <= until:
        chunk = storage.read(position, RUN_BYTES) if needles else b""
        last = min(position + chunk.count(b"\n") - 1, until)
        if not needles:
            for run in runs(storage, position, until):
                yield run, run[-1].position
            return
        if not chunk:
            return
        if all(any(needle in chunk for needle in group) for group in needles):
            for run in runs(storage, position, last):
                yield run, run[-1].position
        else:
            yield (), last
        position = last + 1


def time_at(storage: StorageReader, position: int) -> str:
    """The time that the line at ``position`` claims. Raises CorruptLog when it is no event."""
    line = storage.read(position, 1)
    try:
        return decode_line(line.rstrip(b"\n")).time
    except msgspec.DecodeError as error:
        file, offset = storage.place(position)
        raise CorruptLog(file, offset, position, f"not an event: {error}") from error


def position_at_time(storage: StorageReader, time: str) -> int:
    """The first position whose time is not before ``time``; behind the tail when there is none."""
    low, high = 1, storage.tail().position + 1
    while low < high:
        middle = (low + high) // 2
        if time_at(storage, middle) < time:
            low = middle + 1
        else:
            high = middle
    return low
