"""The content-addressed store for what is too large for a line: ``blobs/<aa>/<sha256>`` (DESIGN §2).

A blob is durable before the event that names it is written. Content is checked against its name at each reading.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from hashlib import sha256
from itertools import count
from typing import Final

from events.disk import Disk, DiskFile
from events.errors import CorruptLog, NotFound

BLOB_PREFIX: Final = b'{"blob":{"sha256":"'
"""How ``data`` begins when the payload lies in the blob store; no payload type has a single field ``blob``."""

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
        self._disk.make_folder(folder)
        if digest in self._disk.names(folder) and self._found(digest) == content:
            self._disk.sync_folder(folder)  # who put it there may have crashed before it was durable
            return digest
        temporary, file = self._create(f"{folder}/{digest}")
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
            content = self._found(sha256_hex)
        except FileNotFoundError:
            raise NotFound(f"there is no blob {sha256_hex}", "it was removed; restore it from a copy") from None
        if content is None or sha256(content).hexdigest() != sha256_hex:
            raise CorruptLog(f"blobs/{sha256_hex[:2]}/{sha256_hex}", 0, 0, "its content is not what its name says")
        return content

    def _create(self, path: str) -> tuple[str, DiskFile]:
        """A new file beside ``path`` that no other writer has; what a crash left there keeps its name."""
        for number in count(1):
            temporary = f"{path}.{number}.tmp"
            with suppress(FileExistsError):
                return temporary, self._disk.open(temporary, create=True)
        raise AssertionError("counting ends never")

    def _found(self, digest: str) -> bytes | None:
        """What stands under this name; None for a link or a folder. Raises FileNotFoundError, OSError."""
        try:
            file = self._disk.open(f"{self._folder}/{digest[:2]}/{digest}")
            try:
                return file.read_at(0, file.size())
            finally:
                file.close()
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EISDIR}:
                return None
            raise
