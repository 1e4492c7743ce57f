"""The way in: every fact passes here before it may be appended (docs/design.md §2.7).

Redaction on values, then encoding, then, for what is too large for a line, the blob store; synced before the event
that names it is written.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pmagent.actors.core.actor import StoredBlob
from pmagent.actors.core.outcomes import fact_of, unrecorded
from pmagent.contracts.effect import EffectFailed, may_end
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event
from pmagent.events.redact import Redactor
from pmagent.events.storage import BLOB_BYTES_MAX, Blobs, BlobWriter

GAP_MARGIN: Final = 64 * 1024
"""Longer than any secret but a PEM block, in bytes."""

HELD_BYTES: Final = 64 * 1024
"""A stream keeps so many bytes in memory before it begins a file."""

_KEY_EDGE: Final = re.compile(rb"-----(BEGIN|END) [A-Z0-9 ]*+(?:(?<=PRIVATE KEY)|(?<=PRIVATE KEY BLOCK))-----")
_encode: Final = msgspec.json.Encoder().encode


class Intake:
    """Makes drafts of facts, masked by ``redactor``. ``blobs`` is where large payloads go."""

    def __init__(self, redactor: Redactor, blobs: Blobs) -> None:
        self.redactor = redactor
        self._blobs = blobs

    def fact(self, payload: msgspec.Struct, id: str, actor: str, correlation: str = "", causation: int = 0) -> Draft:
        """A draft of ``payload``, redacted. May write and sync a blob (call it in a thread for large payloads).

        Raises OSError when the blob cannot be written, msgspec.ValidationError when ``payload`` does not have the shape
        of its type, TypeError when it holds what cannot be redacted or encoded.
        """
        text = self.redactor.text
        return self._draft(payload, text(id), actor, text(correlation), causation)

    def own_fact(self, payload: msgspec.Struct, id: str, actor: str, correlation: str) -> Draft:
        """``fact`` under an ``id`` that pmagent made, of nothing secret."""
        return self._draft(payload, id, actor, self.redactor.text(correlation), 0)

    def _draft(self, payload: msgspec.Struct, id: str, actor: str, correlation: str, causation: int) -> Draft:
        clean = self.redactor.value(payload)
        name, raw = type_of(clean), encode(clean)
        seen = decode(name, raw)  # what actors see live is what they will see when the log is read
        if len(raw) > DATA_BYTES_MAX:
            sha256 = self._blobs.put(raw)
            raw = _encode({"blob": {"sha256": sha256, "size": len(raw), "media_type": "application/json"}})
        return Draft(name, seen, raw, id, actor, correlation, causation)

    def outcome(self, event: Event, outcome: msgspec.Struct) -> Draft:
        """The draft of the outcome of the effect that ``event`` requested. An outcome that is no payload of its type,
        or of a type that the request does not declare, is the performer's failure; one that cannot be kept (a full
        disk) is unknown. May write and sync a blob."""
        try:
            if may_end(event.data, outcome):
                return self._draft(*fact_of(event, outcome))  # its id is ours, its correlation stands in the log
            failure = "NotItsOutcome"
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            failure = type(error).__name__
        except OSError as error:
            return self._draft(*fact_of(event, unrecorded(event, error)))
        return self._draft(*fact_of(event, EffectFailed(request=event.position, error=failure, place=event.type)))

    def masked(self, text: str) -> str:
        """``text`` as a fact will hold it."""
        return self.redactor.text(text)

    def blob(self, sha256: str) -> bytes:
        """The content of the blob with this hash. Raises NotFound, CorruptLog."""
        return self._blobs.get(sha256)

    def content(self, content: bytes) -> str:
        """Put redacted ``content`` into the blob store; its SHA-256."""
        return self._blobs.put(self.redactor.content(content))

    def ends(self, head: bytes, tail: bytes, total: int) -> StoredBlob:
        """Store the beginning and the end of content of ``total`` bytes. ``GAP_MARGIN`` bytes on either side of the gap
        are left out too: they may hold a part of a secret whose other part is missing. One line tells of it."""
        before, after = self.redactor.content(head), self.redactor.content(tail)[GAP_MARGIN:]
        before = before[: text_end(before, max(0, len(before) - GAP_MARGIN))]
        if (key := _KEY_EDGE.search(after)) is not None and key[1] == b"END":
            after = after[key.end() :]
        after = after[after.find(b"\n", 0, GAP_MARGIN) + 1 :]
        gap = max(1, total - len(before) - len(after))
        line_end = b"" if before.endswith(b"\n") or not before else b"\n"
        mark = f"… {gap / 2**20:.1f} MiB are missing here …\n".encode()
        whole = before + line_end + mark + after
        sha256 = self._blobs.put(whole)
        return StoredBlob(sha256=sha256, size=len(whole), total=total, cut=True, gap_at=len(before), gap=gap)

    def stream(self, limit: int = BLOB_BYTES_MAX) -> ContentStream:
        """A stream into the blob store. Raises ValueError when ``limit`` is below 0 or above ``BLOB_BYTES_MAX``."""
        return ContentStream(self.redactor, self._blobs, limit)


class ContentStream:
    """Content on its way into the blob store; blocking. For the methods see
    ``pmagent.actors.core.actor.BlobStream``.

    The limit is one of the masked content, so that it cannot cut a secret in two and keep the first part.
    """

    def __init__(self, redactor: Redactor, blobs: Blobs, limit: int) -> None:
        if not 0 <= limit <= BLOB_BYTES_MAX:
            raise ValueError(f"a stream keeps 0 to {BLOB_BYTES_MAX} bytes, not {limit}")
        self._redaction = redactor.stream()
        self._blobs = blobs
        self._limit = limit
        self._writer: BlobWriter | None = None
        self._held = bytearray()
        self._total = 0
        self._cut = False
        self._ended = False

    def write(self, chunk: bytes) -> None:
        """Take more content. Raises OSError; ValueError when the stream has ended."""
        self._check()
        self._total += len(chunk)
        if not self._cut:
            self._keep(self._redaction.feed(chunk))

    def finish(self) -> StoredBlob:
        """Store what was kept. Raises OSError; ValueError when the stream has ended."""
        self._check()
        if not self._cut:
            self._keep(self._redaction.finish())
        if self._writer is None:
            sha256, size = self._blobs.put(bytes(self._held)), len(self._held)
        else:
            sha256, size = self._writer.finish()
        self._ended = True
        gap = max(1, self._total - size) if self._cut else 0
        return StoredBlob(
            sha256=sha256, size=size, total=self._total, cut=self._cut, gap_at=size if self._cut else 0, gap=gap
        )

    def abandon(self) -> None:
        """Leave nothing of it. Raises OSError."""
        if not self._ended:
            self._ended = True
            if self._writer is not None:
                self._writer.abandon()

    def _check(self) -> None:
        if self._ended:
            raise ValueError("this stream is finished, or abandoned")

    def _keep(self, masked: bytes) -> None:
        size = len(self._held) if self._writer is None else self._writer.size
        end = text_end(masked, self._limit - size)
        self._cut = end < len(masked)
        if self._writer is None:
            self._held += masked[:end]
            if len(self._held) > HELD_BYTES:  # what is smaller needs no file of its own while it grows
                self._writer = self._blobs.writer()
                self._writer.append(bytes(self._held))
        else:
            self._writer.append(masked[:end])


def text_end(content: bytes, limit: int) -> int:
    """Where to cut ``content`` so that at most ``limit`` bytes remain, and no character of a text is cut in two."""
    if len(content) <= limit:
        return len(content)
    for end in range(limit, max(limit - 4, -1), -1):
        if content[end] & 0xC0 != 0x80:  # a character begins here
            return end
    return limit  # no text
