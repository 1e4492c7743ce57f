"""The content of a document of more than a few bytes: a blob, or a text that only grows
(docs/design.md §7)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from pmagent.contracts.payload import BlobSource

CHUNK_BYTES: Final = 64 * 1024


class BlobContent(msgspec.Struct, frozen=True):
    """The content of a blob: its SHA-256 in hex and its size in bytes."""

    sha256: str
    size: int


class Growing(msgspec.Struct, frozen=True):
    """A content that is only ever added to, so that who has written its first n bytes needs to write only the others.

    Immutable and small: ``chunks`` are its first bytes, each ``CHUNK_BYTES`` of them compressed (zlib), ``rest`` the
    last ones. Adding to it costs a copy of ``rest``, however much there is.
    """

    chunks: list[bytes] = []
    rest: bytes = b""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.chunks) * CHUNK_BYTES + len(self.rest)

    def added(self, more: bytes) -> Growing:
        """The same with ``more`` behind it."""
        rest = self.rest + more
        if len(rest) < CHUNK_BYTES:
            return Growing(self.chunks, rest)
        whole = len(rest) - len(rest) % CHUNK_BYTES
        packed = [zlib.compress(rest[at : at + CHUNK_BYTES]) for at in range(0, whole, CHUNK_BYTES)]
        return Growing([*self.chunks, *packed], rest[whole:])

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Its bytes from the offset ``start`` on, piece by piece."""
        number, skip = divmod(start, CHUNK_BYTES)
        for packed in self.chunks[number:]:
            yield zlib.decompress(packed)[skip:]
            skip = 0
        yield self.rest[skip:]


Content = bytes | BlobContent | Growing
"""The content of a document."""


def whole(content: Content, blobs: BlobSource) -> bytes:
    """All bytes of a content. Raises NotFound, CorruptLog for a blob that is gone or damaged."""
    if isinstance(content, bytes):
        return content
    return blobs.get(content.sha256) if isinstance(content, BlobContent) else b"".join(content.pieces())
