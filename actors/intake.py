"""The way in: every fact passes here before it may be appended (DESIGN §2).

Redaction on values, then encoding, then, for what is too large for a line, the blob store; synced before the event
that names it is written.
"""

from __future__ import annotations

from typing import Final

import msgspec

from contracts.payload import decode, encode, type_of
from events.blobs import BlobStore
from events.event import DATA_BYTES_MAX, Draft
from events.redact import Redactor

_encode: Final = msgspec.json.Encoder().encode


class Intake:
    """Makes drafts of facts. ``blobs`` is where large payloads go."""

    def __init__(self, redactor: Redactor, blobs: BlobStore) -> None:
        self._redactor = redactor
        self._blobs = blobs

    def fact(self, payload: msgspec.Struct, id: str, actor: str, correlation: str = "", causation: int = 0) -> Draft:
        """A draft of ``payload``, redacted. May write and sync a blob (call it in a thread for large payloads).

        Raises OSError when the blob cannot be written, msgspec.ValidationError when ``payload`` does not have the shape
        of its type, TypeError when it holds what cannot be redacted or encoded.
        """
        clean = self._redactor.value(payload)
        name, raw = type_of(clean), encode(clean)
        seen = decode(name, raw)  # what actors see live is what they will see when the log is read
        if len(raw) > DATA_BYTES_MAX:
            sha256 = self._blobs.put(raw)
            raw = _encode({"blob": {"sha256": sha256, "size": len(raw), "media_type": "application/json"}})
        text = self._redactor.text
        return Draft(name, seen, raw, text(id), actor, text(correlation), causation)

    def content(self, content: bytes) -> str:
        """Put redacted ``content`` into the blob store; its SHA-256."""
        return self._blobs.put(self._redactor.content(content))
