"""Checks the blobs that events name: each is there, is a regular file, and has the size and the content that its name
and the event say (docs/design.md §2.6).

Payload types say which blobs they name (``pmagent.contracts.blobs``); here is only how they are checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from pmagent.events.blobs import blob_file
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import StoredEvent
from pmagent.events.storage import Blobs

FINDINGS_MAX: Final = 100
"""So many bad blobs are named one by one; all are counted."""

_NAME: Final = re.compile(r"[0-9a-f]{64}")


class NamedBlob(NamedTuple):
    """A blob as an event names it; ``size`` in bytes, None where the event does not say."""

    sha256: str
    size: int | None


class NamedBlobs(msgspec.Struct, frozen=True):
    """How the blobs are found that lines name: one of ``needles`` stands in each such line, and ``names`` gives the
    blobs of its event."""

    needles: Sequence[bytes]
    names: Callable[[StoredEvent, Blobs], Iterable[NamedBlob]]


class BadBlob(msgspec.Struct, frozen=True):
    """A blob that is not what the event at ``position``, the first that names it so, says. ``file``: where it belongs,
    beside the log's folder."""

    file: str
    position: int
    reason: str


class Dropped(NamedTuple):
    """Blobs that were given up on purpose: no event up to position ``until`` needs them any more."""

    until: int
    names: Sequence[str]


class BlobsChecked(msgspec.Struct, frozen=True):
    """How many blobs were ``checked``, with how many ``bytes``, and how many are ``bad``; the first ``FINDINGS_MAX`` of
    these are in ``findings``. ``pruned``: so many are gone on purpose, and count nowhere else."""

    checked: int = 0
    bytes: int = 0
    bad: int = 0
    findings: list[BadBlob] = []
    pruned: int = 0


class BlobCheck:
    """Checks blobs as events name them, each once. ``needles``: one of them stands in every line whose event names or
    drops a blob. ``names`` gives the blobs that an event names, ``drops`` those that it gives up.

    Content is read in pieces. Memory grows by about 120 bytes a blob, for what is checked already.
    """

    def __init__(
        self, store: Blobs, needles: Sequence[bytes], names: Callable[[StoredEvent, Blobs], Iterable[NamedBlob]],
        drops: Callable[[StoredEvent, Blobs], Dropped | None] = lambda _event, _store: None,
    ) -> None:  # fmt: skip
        self.needles = needles
        self._store = store
        self._names = names
        self._drops = drops
        self._known: set[bytes] = set()
        self._bytes = 0
        self._bad: dict[str, _Bad] = {}
        self._pruned = 0

    @property
    def result(self) -> BlobsChecked:
        """The result so far."""
        bad = [finding for one in self._bad.values() for finding in one.findings.values()]
        return BlobsChecked(len(self._known), self._bytes, len(bad), bad[:FINDINGS_MAX], self._pruned)

    @property
    def bytes(self) -> int:
        """How many bytes of blobs have been read."""
        return self._bytes

    def look(self, event: StoredEvent) -> None:
        """Check the blobs that ``event`` names."""
        for blob in self._names(event, self._store):
            bad = self._bad.get(blob.sha256)
            if bad is not None:
                bad.last = event.position
            key = _key(blob)
            if key in self._known:
                continue
            self._known.add(key)
            if reason := self._fault(blob):
                bad = self._bad.setdefault(blob.sha256, _Bad(event.position))
                bad.findings[key] = BadBlob(blob_file(blob.sha256), event.position, reason)
        dropped = self._drops(event, self._store)
        for name in dropped.names if dropped is not None else ():
            bad = self._bad.get(name)
            if bad is not None and dropped is not None and bad.last <= dropped.until:
                self._pruned += 1
                self._known -= bad.findings.keys()
                del self._bad[name]

    def _fault(self, blob: NamedBlob) -> str:
        """The fault of a blob; "" if there is none."""
        try:
            size = self._store.check(blob.sha256)
        except NotFound:
            return "it is missing"
        except CorruptLog as error:
            return error.reason
        except OSError as error:
            return f"it cannot be read: {error.strerror or os.strerror(error.errno or 0)}"
        self._bytes += size
        if blob.size is not None and blob.size != size:
            return f"it has {size} bytes, and the event says {blob.size}"
        return ""


class _Bad:
    """The findings about a blob, by the keys of what was checked, and the position of the ``last`` event that names
    it."""

    def __init__(self, position: int) -> None:
        self.last = position
        self.findings: dict[bytes, BadBlob] = {}


def _key(blob: NamedBlob) -> bytes:
    """The blob and its size, short: there may be a million of them."""
    if blob.size is not None and _NAME.fullmatch(blob.sha256) and 0 <= blob.size < 1 << 64:
        return bytes.fromhex(blob.sha256) + blob.size.to_bytes(8, "big")
    return repr(blob).encode()
