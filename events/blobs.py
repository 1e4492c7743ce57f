"""The content-addressed store for what is too large for a line: ``blobs/<aa>/<sha256>`` (DESIGN §2).

A blob is durable before the event that names it is written. Content is checked against its name at each reading.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from events.disk import Disk
from events.errors import CorruptLog, NotFound

BLOB_BYTES_MAX: Final = 256 * 1024 * 1024
"""Upper bound of one blob."""


class BlobStore:
    """Blobs under ``folder``. Any number of readers; writers of equal content do not disturb each other."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Make ``content`` (redacted already) durable and return its SHA-256 in hex. Raises OSError, ValueError."""
        if len(content) > BLOB_BYTES_MAX:
            raise ValueError(f"a blob holds at most {BLOB_BYTES_MAX} bytes, not {len(content)}")
        digest = sha256(content).hexdigest()
        folder = f"{self._folder}/{digest[:2]}"
        if digest in self._disk.names(folder):
            if self._read(digest) == content:
                return digest
            self._disk.unlink(f"{folder}/{digest}")  # a damaged or half-written one is replaced by the real content
        self._disk.make_folder(folder)
        temporary = f"{folder}/{digest}.tmp"
        self._disk.unlink(temporary)
        file = self._disk.open(temporary, create=True)
        try:
            file.append(content)
            file.sync()
        finally:
            file.close()
        self._disk.rename(temporary, f"{folder}/{digest}")
        self._disk.sync_folder(folder)
        return digest

    def get(self, sha256_hex: str) -> bytes:
        """The content with this hash. Raises NotFound, and CorruptLog when the file is not what its name says."""
        if len(sha256_hex) != 64 or not set(sha256_hex) <= set("0123456789abcdef"):
            raise NotFound(f"{sha256_hex!r} is not the name of a blob")
        try:
            content = self._read(sha256_hex)
        except FileNotFoundError:
            raise NotFound(f"there is no blob {sha256_hex}", "it was removed; restore it from a copy") from None
        if sha256(content).hexdigest() != sha256_hex:
            raise CorruptLog(f"blobs/{sha256_hex[:2]}/{sha256_hex}", 0, 0, "its content is not what its name says")
        return content

    def _read(self, digest: str) -> bytes:
        file = self._disk.open(f"{self._folder}/{digest[:2]}/{digest}")
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()
