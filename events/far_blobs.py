"""Blobs that lie elsewhere than on this machine, with a folder here as their cache (docs/design.md §2.6).

A blob is durable when the far store has it; whatever is in the folder may be removed at any time. Content is checked
against its name wherever it is read: what is rotten in the folder is fetched again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from typing import Final, Protocol

from pmagent.events.blobs import BlobStore, FileBlobReader, FileBlobWriter, blob_file
from pmagent.events.errors import CorruptLog, NotFound, PmagentError

_NOTED: Final = 4096


class BlobsUnreachable(PmagentError, exit_code=5):
    """The far store of blobs cannot be reached, or does not let us in."""


class BlobNotKept(PmagentError, OSError, exit_code=5):
    """The far store did not take a blob, so nothing may name it. An OSError, as a full disk is."""


class Far(Protocol):
    """A far store. Any number of threads may call it. Each method raises BlobsUnreachable, after it has tried for a
    while."""

    def put(self, name: str, content: FileBlobReader) -> int:
        """Make ``content`` durable under ``name``, unless a blob has that name; the size of the one that has it."""

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of a blob, unchecked. Raises NotFound."""

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """See Blobs."""

    def clear_unfinished(self) -> int:
        """See Blobs."""

    def total(self) -> int | None:
        """How many bytes all blobs have together; None: it would take long to know."""


class FarBlobs:
    """The blobs in ``far``, with ``cache`` on this machine (see ``pmagent.events.storage.Blobs``)."""

    def __init__(self, far: Far, cache: BlobStore) -> None:
        self._far = far
        self._cache = cache
        self._durable: set[str] = set()
        """Some of the blobs that the far store has by now."""

    def put(self, content: bytes) -> str:
        """See Blobs. Raises BlobNotKept, too."""
        name = self._cache.put(content)
        self.keep(name)
        return name

    def keep(self, name: str) -> None:
        """Make a blob of the cache durable. Raises BlobNotKept, OSError."""
        if name in self._durable:
            return
        with closing(self._cache.reader(name)) as content:
            try:
                found = self._far.put(name, content)
            except BlobsUnreachable as error:
                raise BlobNotKept(error.message, error.hint) from error
            if found != content.size:
                what = f"the far blob {name} has {found} bytes, and its content {content.size}"
                raise BlobNotKept(what, "restore it from a copy, or remove it there: it is stored again then")
        if len(self._durable) >= _NOTED:
            self._durable = set()
        self._durable.add(name)

    def get(self, sha256_hex: str) -> bytes:
        """See Blobs. Raises BlobsUnreachable, OSError, too."""
        try:
            return self._cache.get(sha256_hex)
        except (NotFound, CorruptLog):
            self._fetch(sha256_hex)
        return self._cache.get(sha256_hex)

    def reader(self, sha256_hex: str) -> FileBlobReader:
        """See Blobs. Raises BlobsUnreachable, too."""
        try:
            self._cache.check(sha256_hex)
        except (NotFound, CorruptLog):
            self._fetch(sha256_hex)
        return self._cache.reader(sha256_hex)

    def check(self, sha256_hex: str) -> int:
        """See Blobs: what the far store has counts. Raises BlobsUnreachable, too."""
        return sum(map(len, self._checked(sha256_hex)))

    def writer(self) -> FarBlobWriter:
        """See Blobs."""
        return FarBlobWriter(self, self._cache.writer())

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """See Blobs."""
        gone = list(names)
        self._durable.difference_update(gone)
        try:
            found = self._far.remove(gone)
        except BlobsUnreachable as error:
            raise BlobNotKept(error.message, error.hint) from error
        self._cache.remove(gone)
        return found

    def clear_unfinished(self) -> int:
        """See Blobs."""
        return self._cache.clear_unfinished() + self._far.clear_unfinished()

    def _fetch(self, name: str) -> None:
        """Put a blob of the far store into the cache. Raises NotFound, CorruptLog, BlobsUnreachable, OSError."""
        writer = self._cache.writer()
        try:
            for piece in self._checked(name):
                writer.append(piece)
            writer.finish()
        finally:
            writer.abandon()

    def _checked(self, name: str) -> Iterator[bytes]:
        """The pieces of a blob of the far store; after the last one they are what its name says, or CorruptLog is
        raised."""
        found = sha256()
        for piece in self._far.pieces(name):
            found.update(piece)
            yield piece
        if found.hexdigest() != name:
            raise CorruptLog(blob_file(name), 0, 0, "its content in the far store is not what its name says")


class FarBlobWriter:
    """A blob that grows in the cache, and is made durable at its end (see ``pmagent.events.storage.BlobWriter``)."""

    def __init__(self, blobs: FarBlobs, writer: FileBlobWriter) -> None:
        self._blobs = blobs
        self._writer = writer
        self.append = writer.append
        self.abandon = writer.abandon

    @property
    def size(self) -> int:
        """See BlobWriter."""
        return self._writer.size

    def finish(self) -> tuple[str, int]:
        """See BlobWriter. Raises BlobNotKept, too."""
        name, size = self._writer.finish()
        self._blobs.keep(name)
        return name, size


def missing(name: str) -> NotFound:
    """There is no blob of this name in the far store."""
    return NotFound(f"there is no blob {name}", "it was removed; restore it from a copy")
