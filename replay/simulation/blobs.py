"""Blobs on the simulated disk: as the product keeps them, with fewer sums computed."""

from __future__ import annotations

from pmagent.events.blobs import BlobStore
from pmagent.replay.simulation.disk import SimDisk


class SimBlobs(BlobStore):
    """Content is hashed when it is read first; afterwards it is compared with what had the hash."""

    def __init__(self, disk: SimDisk, folder: str) -> None:
        super().__init__(disk, folder)
        self._known: dict[str, bytes] = {}

    def _has_hash(self, content: bytes, sha256_hex: str) -> bool:
        if self._known.get(sha256_hex) == content:
            return True
        found = super()._has_hash(content, sha256_hex)
        if found:
            self._known[sha256_hex] = content
        return found
