"""The snapshot cache: taking it, and trusting it only when it is exactly of this log and this code
(docs/design.md §3.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from pmagent._origin import PLACE
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import (
    FORMAT,
    EngineState,
    Snapshot,
    encode_snapshot,
    export_engine,
    restore_engine,
    usable,
)
from pmagent.events.atomic import write_atomic
from pmagent.events.event import Event, Tail
from pmagent.events.storage import StorageReader
from pmagent.projections.core.documents import Documents
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.service.noted import sources

EVENTS_BETWEEN: Final = 50_000
"""A running daemon takes a snapshot after so many events."""

_CODE: Final = ("actors", "contracts", "events", "projections")


@cache
def code_digest() -> str:
    """SHA-256 over the source of everything that folds, and the data files that decide with it: other code, other
    folds, so its snapshots do not count."""
    digest = sha256()
    for path, *_ in sorted(one for package in _CODE for one in sources(f"{PLACE}/{package}")):
        with open(path, "rb", 0) as file:  # half a thousand of them: a pathlib's time would be twice this
            digest.update(path.removeprefix(PLACE).encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


def load(path: Path, digest: str, log_id: str, storage: StorageReader, engine: Engine, documents: Documents) -> int:
    """Restore ``engine`` and ``documents`` from the cache if it fits; the position they then stand at, else 0.

    ``digest`` is the SHA-256 of the only content that counts, from this user's registry ("": none does): nobody who can
    only write the workspace makes up a state. A snapshot that is stale, foreign, damaged or of other code is ignored as
    well: the log is folded instead.
    """
    if not digest:
        return 0
    try:
        content = path.read_bytes()
    except OSError:  # mostly: there is none yet
        return 0
    snapshot = usable(content, log_id, code_digest(), storage) if sha256(content).hexdigest() == digest else None
    if snapshot is None:
        return 0
    try:
        states = documents.decoded(snapshot.extra)
        restore_engine(engine, snapshot.engine, snapshot.tail)
    except (msgspec.MsgspecError, KeyError):  # nothing has been restored then
        return 0
    documents.restore(states, snapshot.tail.position)
    return snapshot.tail.position


class SnapshotTaker:
    """A listener that takes a snapshot every ``EVENTS_BETWEEN`` events, when it is known to be of durable events.
    ``written`` is told of each that lies in the cache.

    The engine runs ahead of the disk: its state is exported at its newest position, and kept until that position is
    durable and its sum known; the documents stand at that position then.
    """

    def __init__(
        self, path: Path, log_id: str, engine: Engine, documents: Documents,
        written: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._written = written
        self._log_id = log_id
        self._engine = engine
        self._documents = documents
        self._since = 0
        self._held: tuple[int, EngineState] | None = None
        self.ready: bytes | None = None
        self.failure: OSError | None = None

    def hear(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Count durable events, after the documents have folded them."""
        self._since += len(events)
        last = events[-1]
        if self._held is not None and last.position == self._held[0]:
            if not self._owing:
                self.ready = self._encode(self._held[1], Tail(last.position, 0, last.time, sums[-1]))
            self._held = None
        elif self._held is None and self._since >= EVENTS_BETWEEN and self._engine.quiescent and not self._owing:
            self._since = 0
            position = self._engine.sequencer.position
            if position > last.position:
                self._held = (position, export_engine(self._engine))
            else:
                self.ready = self._encode(export_engine(self._engine), Tail(position, 0, last.time, sums[-1]))

    def final(self, tail: Tail, status: Callable[[], bytes] = bytes) -> bytes | None:
        """The snapshot at an orderly end, if the engine stands at the durable tail; ``status`` computes what it notes
        of that."""
        if not self._engine.quiescent or self._engine.sequencer.position != tail.position or not tail.position:
            return None
        if self._owing:
            return None
        return self._encode(export_engine(self._engine), tail, status())

    def write(self, content: bytes) -> None:
        """Put it into the cache. One that cannot be kept makes the next start slower and nothing else, so what stood in
        the way is only remembered, as ``failure``."""
        try:
            write_atomic(self._path, content, 0o600)
        except OSError as error:
            self.failure = error
        else:
            self._written(content)

    @property
    def _owing(self) -> bool:
        """Whether a start from a snapshot would not know of documents that are still to be written."""
        return self._documents.owing

    def _encode(self, engine: EngineState, tail: Tail, status: bytes = b"") -> bytes | None:
        """None where a projection is halted: the next start folds everything anew."""
        try:
            folds = self._documents.export()
        except ProjectionHalted:
            return None
        return encode_snapshot(Snapshot(FORMAT, self._log_id, tail, code_digest(), engine, folds, status))
