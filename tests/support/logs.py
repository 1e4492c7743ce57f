"""Small logs for tests: written in one thread, with texts and times that are the same in each run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from pmagent.events.commit import Committer
from pmagent.events.disk import Disk
from pmagent.events.errors import CorruptLog
from pmagent.events.event import Draft, LogCreated, StoredEvent, Tail
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.head import HeadSlot, encode_slot
from pmagent.events.lock import WriterLock
from pmagent.events.reader import events
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.segments import SegmentReader, segment_firsts, segment_name
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Storage
from pmagent.events.store import Verification
from pmagent.events.verify import verify_log
from pmagent.workspace.layout import Layout
from tests.support.memory_disk import MemoryDisk

FOLDER = "/log"
HEAD_PATH = f"{FOLDER}/{HEAD_NAME}"
LOG_ID = "0123456789abcdef" * 2


def draft(number: int, size: int = 20, kind: str = "note") -> Draft:
    """A fact with about ``size`` bytes of data."""
    raw = b'{"n":%d,"text":"%s"}' % (number, (b"%d." % number * size)[:size])
    return Draft(f"test.{kind}", None, raw, f"{kind}-{number}", "source")


@contextmanager
def locked(workspace: Path, note: str) -> Iterator[None]:
    """Hold the log of ``workspace``, as the process ``note``."""
    lock = WriterLock(Layout(workspace).evidence.locks[-1], note)
    try:
        yield
    finally:
        lock.release()


def moment(number: int) -> str:
    """A time in a log."""
    return f"2026-11-21T{19 + number // 3600 % 5:02d}:{number // 60 % 60:02d}:{number % 60:02d}.{number % 997:06d}Z"


class BatchWriter:
    """Appends to a storage batch by batch, in the calling thread. ``acknowledged`` holds the tail after each."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.sequencer = Sequencer(storage.tail())
        self.committer = Committer(storage)
        self.acknowledged: list[Tail] = [storage.tail()]

    def write(self, drafts: Iterable[Draft], second: int | None = None) -> Tail:
        """Append ``drafts`` as one batch; returns the tail when they are durable."""
        at = moment(self.sequencer.position if second is None else second)
        self.committer.submit([self.sequencer.admit(draft, at) for draft in drafts])
        durable = self.committer.commit()
        assert durable is not None
        self.acknowledged.append(durable.tail)
        return durable.tail

    def create(self, log_id: str) -> Tail:
        """Write log.created."""
        raw = msgspec.json.encode(LogCreated(log_id=log_id))
        return self.write([Draft("log.created", None, raw, f"log.created:{log_id}", "log")])


def open_segments(disk: Disk, segment_bytes: int = 700, log_id: str = LOG_ID, folder: str = FOLDER) -> SegmentStorage:
    """The segment storage in ``folder``; rolls early."""
    return SegmentStorage(disk, folder, log_id, segment_bytes)


def write_log(
    disk: Disk, batches: Sequence[int], segment_bytes: int = 700, log_id: str = LOG_ID, size: int = 20,
    kind: str = "note",
) -> list[Tail]:
    """Write a log: log.created, then a batch of so many events for each of ``batches``. Returns the tail after each."""
    storage = open_segments(disk, segment_bytes, log_id)
    writer = BatchWriter(storage)
    if storage.tail().position == 0:
        writer.create(log_id)
    for count in batches:
        start = storage.tail().position
        writer.write([draft(start + n + 1, size, kind) for n in range(count)])
    storage.close()
    return writer.acknowledged[1:]


def path(first: int) -> str:
    """The path of a segment."""
    return f"{FOLDER}/{segment_name(first)}"


def segment_paths(disk: Disk) -> list[str]:
    """The paths of all segments, in order."""
    return [path(first) for first in segment_firsts(disk, FOLDER)]


def head_bytes(tail: Tail, log_id: str = LOG_ID) -> bytes:
    """HEAD, noting ``tail`` in both slots."""
    return encode_slot(HeadSlot(log_id, tail.position, tail.batch, tail.time, tail.sum)) * 2


def all_events(disk: Disk, until: int | None = None) -> list[StoredEvent]:
    """The events that a reader in another process gets."""
    with closing(SegmentReader(disk, FOLDER)) as reader:
        return list(events(reader, 1, until))


def sums(found: Iterable[StoredEvent]) -> list[str]:
    """The sums of events."""
    return [event.sum for event in found]


class Line(NamedTuple):
    """Where a line of a log stands."""

    path: str
    start: int
    end: int
    position: int

    @property
    def file(self) -> str:
        """The segment's name."""
        return self.path.rpartition("/")[2]


def lines_of(disk: MemoryDisk) -> list[Line]:
    """Where the lines of an intact log stand."""
    found: list[Line] = []
    for segment in segment_paths(disk):
        raw = disk.read(segment).splitlines(keepends=True)
        start = 0
        for line in raw:
            found.append(Line(segment, start, start + len(line), len(found) + 1))
            start += len(line)
    return found


def require_intact(folder: str, disk: Disk | None = None) -> Verification:
    """Verify, and raise CorruptLog for a finding."""
    result = verify_log(folder, disk)
    if result.finding is not None:
        found = result.finding
        raise CorruptLog(found.file, found.offset, found.position, found.reason)
    return result
