"""The store of a log in memory: shows that nothing in the protocol needs files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import msgspec

from pmagent.events.blobs import BlobStore
from pmagent.events.errors import LogLocked, LogMoved, NotFound
from pmagent.events.log import now
from pmagent.events.named_blobs import BlobCheck
from pmagent.events.reader import events
from pmagent.events.storage import Standby
from pmagent.events.store import Fault, Holder, Identity, LocalFiles, Part, Size, Standing, Verification
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage

_numbers = count(1)


class MemoryLog:
    """A log that lies nowhere else."""

    place = "memory"

    def __init__(self) -> None:
        self._number = next(_numbers)
        self._storage: MemoryStorage | None = None
        self._holder = Holder(live=False)
        self._moved_to = ""
        self._blobs = BlobStore(MemoryDisk(), "/blobs")

    def exists(self) -> bool:
        """See LogStore."""
        return self._storage is not None

    def reader(self) -> MemoryStorage:
        """See LogStore."""
        if self._storage is None:
            raise NotFound("there is no log in memory")
        return self._storage

    def blobs(self) -> BlobStore:
        """See LogStore."""
        return self._blobs

    @contextmanager
    def lease(self, role: str, *, standby: Standby | None = None) -> Iterator[MemoryLog]:
        """See LogStore."""
        assert standby is None, "nobody else can hold it"
        if self._moved_to:
            raise LogMoved(self.place, self._moved_to)
        if self._holder.live:
            raise LogLocked(self.place, self._holder.note)
        pid = os.getpid()
        self._holder = Holder(live=True, note=f"pid {pid}, {role}", pid=pid, role=role, since=now())
        try:
            yield self
        finally:
            self._holder = msgspec.structs.replace(self._holder, live=False)

    def open(self, new_log_id: str = "") -> MemoryStorage:
        """See Lease."""
        self._storage = self._storage or MemoryStorage(new_log_id or f"{self._number:032x}")
        return self._storage

    def close_for_good(self, to: str) -> None:
        """See Lease."""
        self._moved_to = to

    def holder(self) -> Holder:
        """See LogStore."""
        return self._holder

    def sharing(self) -> None:
        """See LogStore."""

    def verify(
        self, *, decode: bool = False, blobs: BlobCheck | None = None,  # noqa: ARG002 - a reader decodes anyway
        progress: Callable[[int], None] | None = None,
    ) -> Verification:  # fmt: skip
        """See LogStore."""
        reader = self.reader()
        for event in events(reader):
            if blobs is not None:
                blobs.look(event)
        tail, size = reader.tail(), self.size().lines
        if progress is not None:
            progress(size)
        checked = blobs.result if blobs is not None else None
        log_id, count = reader.log_id(), tail.position
        return Verification(
            ok=True, log_id=log_id, events=count, bytes=size, segments=1, tail=tail, durable=tail, beyond_bytes=0,
            finding=None, blobs=checked,
        )  # fmt: skip

    def stat(self) -> Standing:
        """See LogStore."""
        if self._storage is None:
            return Standing("", (), None, [], 0, 0, [], "")
        tail, size = self._storage.tail(), self.size().lines
        part = Part("memory", 1, tail.position, size, sealed=False)
        return Standing(self._storage.log_id(), (tail,), tail, [part] if size else [], 0, size, [], "")

    def faults(self) -> list[Fault]:
        """See LogStore: there is no database."""
        return []

    def size(self) -> Size:
        """See LogStore."""
        return Size(len(self._storage.read(1, 1 << 62)) if self._storage is not None else 0, 0)

    def identity(self) -> Identity:
        """See LogStore."""
        self.reader()
        return Identity(self.place, (0, self._number), os.getuid())

    def age(self) -> tuple[int, int]:
        """See LogStore."""
        return 0, 0

    def written(self, position: int) -> tuple[int, str]:
        """See LogStore."""
        reader = self.reader()
        return reader.tail().position, next((event.sum for event in events(reader, max(1, position), position)), "")

    def attempts(self) -> None:
        """See LogStore."""

    def files(self) -> LocalFiles:
        """See LogStore."""
        return LocalFiles()
