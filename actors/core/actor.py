"""Actors, and the performers of the effects that they request (docs/design.md §3.1, §4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event
from pmagent.events.storage import BLOB_BYTES_MAX

S = TypeVar("S")


class Actor(Protocol[S]):
    """A pure pair: ``evolve`` folds an event into the state, ``decide`` answers it.

    Neither reads a clock, draws randomness or does I/O: time is ``event.time``, ids derive from the event. The
    state is an immutable ``msgspec.Struct`` whose field types are declared, so that it can be cached and read back.
    ``hears`` is what wakes the actor: for each such event, ``evolve`` and then ``decide`` are called; the actor's own
    decisions are then folded with ``evolve`` and do not wake it again.
    """

    @property
    def name(self) -> str:
        """The actor's name, in the log and in permits."""

    @property
    def hears(self) -> frozenset[type[msgspec.Struct]]:
        """Payload types that wake it."""

    def initial(self) -> S:
        """The state before the first event."""

    def evolve(self, state: S, event: Event) -> S:
        """The state after ``event`` (one it hears, or a decision of its own). Never refuses."""

    def decide(self, state: S, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions that follow from ``event``, which ``state`` includes already. Decisions belong to the event's
        correlation unless they say otherwise."""


class StoredBlob(msgspec.Struct, frozen=True):
    """The result of a stream: ``sha256`` (hex) names the blob, which holds ``size`` bytes; ``total`` bytes had been
    written to the stream, before masking; ``cut`` says that not all of it was kept: ``gap`` bytes are missing at the
    offset ``gap_at`` of the blob."""

    sha256: str
    size: int
    total: int
    cut: bool
    gap_at: int = 0
    gap: int = 0


class BlobStream(Protocol):
    """Content of unknown length on its way into the blob store, in bounded memory. One task at a time uses it.

        async with io.store_stream(limit) as stream:
            await stream.write(chunk)
            stored = await stream.finish()

    Leaving the block without ``finish``, also by cancellation, abandons it.
    """

    async def __aenter__(self) -> Self:
        """The stream itself."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Abandons the stream, unless it is finished."""

    async def write(self, chunk: bytes) -> None:
        """Take more content, cut anywhere: a secret, or a character, may begin in one chunk and end in the next. Raises
        OSError; the stream is then good for nothing but ``abandon``."""

    async def finish(self) -> StoredBlob:
        """Return when what was kept is durable under its name. Raises OSError."""

    async def abandon(self) -> None:
        """Leave nothing of it; nothing happens when it is finished or abandoned already. Raises OSError."""


class Io(Protocol):
    """The services that a performer may use, besides its own library calls."""

    @property
    def workspace(self) -> Path:
        """Root of the workspace, absolute."""

    def now(self) -> str:
        """The log's clock: RFC 3339 UTC, microseconds."""

    async def sleep_until(self, at: str) -> None:
        """Return at log time ``at`` or later: after so many real seconds as it is until then, also where the log's time
        stands ahead of the machine's clock."""

    def masked(self, text: str) -> str:
        """``text`` as a fact will hold it, its secrets masked."""

    async def store_blob(self, content: bytes) -> str:
        """Redact ``content``, make it durable in the blob store, and return its SHA-256 (hex)."""

    def store_stream(self, limit: int = BLOB_BYTES_MAX) -> BlobStream:
        """A stream into the blob store that keeps the first ``limit`` bytes of the redacted content, or up to three
        fewer, so that text is not cut within a character (UTF-8); what follows is counted and dropped.

        Raises ValueError when ``limit`` is below 0 or above ``BLOB_BYTES_MAX``.
        """

    async def store_ends(self, head: bytes, tail: bytes, total: int) -> StoredBlob:
        """Store what is known of content of ``total`` bytes: its beginning and its end, redacted, with a line between
        them that tells how much is missing. Raises OSError."""

    async def blob(self, sha256: str) -> bytes:
        """The content of a blob (hex), checked against its name. Raises NotFound, CorruptLog."""

    async def event(self, position: int) -> Event:
        """The durable event at ``position``, its payload decoded. Raises NotFound, CorruptLog."""


Performer = Callable[[Event, Io], Awaitable[msgspec.Struct]]
"""Does what a request event asks for and returns the outcome's payload. It may raise: that is ``effect.failed``."""

Performers = Mapping[type[msgspec.Struct], Performer]
"""Request payload type -> performer; each area's ``effects.py`` has one as ``PERFORMERS``."""

R = TypeVar("R")


class Resources:
    """Objects that areas keep for as long as a host lives, one of each class."""

    def __init__(self, kept: Iterable[object] = ()) -> None:
        self._kept = {type(one): one for one in kept}

    def __getitem__(self, kind: type[R]) -> R:
        """The one of the class ``kind``. Raises KeyError."""
        one = self._kept[kind]
        assert isinstance(one, kind), "kept by its class"
        return one

    def __iter__(self) -> Iterator[object]:
        return iter(self._kept.values())


AnyActor = Actor[Any]
