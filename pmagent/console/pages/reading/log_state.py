"""Compares the log with what was noted of it: an answer, a sum, the snapshot; blocking."""

from __future__ import annotations

from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec

from pmagent.actors.core.snapshot import decode_snapshot
from pmagent.events.errors import PmagentError
from pmagent.events.event import Tail
from pmagent.events.reader import event_at
from pmagent.service.cache import code_digest
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import snapshot_digest


class Cached(msgspec.Struct, frozen=True):
    """The snapshot. ``fits``: the next start may begin with it; else ``why`` it is passed over."""

    position: int
    bytes: int
    taken: str
    fits: bool
    why: str


def passed_over(layout: Layout, log_id: str, tail: Tail) -> str:
    """Why an answer about the log ``log_id`` up to ``tail`` says nothing of the log that lies there now; "" where it
    still does: that log goes as far, and has the same sum there. Blocking."""
    if not tail.position:
        return ""
    try:
        with closing(layout.store.reader()) as storage:
            if storage.log_id() != log_id:
                return f"it is of another log, {log_id}; here lies {storage.log_id()}"
            end = storage.tail().position
            if end < tail.position:
                return f"the log went up to {tail.position} then, and ends with {end} now"
            stored = event_at(storage, tail.position).sum
            return "" if stored == tail.sum else f"the sum at {tail.position} is another now: {stored}"
    except PmagentError as error:
        return error.message


class Held(msgspec.Struct, frozen=True):
    """A sum that somebody has noted, held against the line at ``position``: ``stored`` is the one that stands there."""

    position: int
    noted: str
    stored: str

    @property
    def equal(self) -> bool:
        """Whether the log up to there is what it was when the sum was noted."""
        return self.noted == self.stored


def held(layout: Layout, position: int, noted: str) -> Held:
    """The log's entry at ``position``. Raises NotFound, CorruptLog."""
    with closing(layout.store.reader()) as storage:
        return Held(position, noted, event_at(storage, position).sum)


class Snapshots:
    """Looks at the snapshot, again only when it or the log's length has changed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._known: tuple[tuple[int, int], Cached] | None = None

    def look(self) -> Cached | None:
        """The snapshot as it lies there; None: there is none. Raises OSError."""
        path = self._layout.snapshot
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        key = (status.st_mtime_ns, status.st_size)
        if self._known is None or self._known[0] != key:
            self._known = (key, self._judged(path, status.st_size))
        return self._known[1]

    def _judged(self, path: Path, size: int) -> Cached:
        content = path.read_bytes()
        snapshot = decode_snapshot(content)
        if snapshot is None:
            return Cached(0, size, "", fits=False, why="it is damaged, or of another format")
        tail = snapshot.tail
        try:
            with closing(self._layout.store.reader()) as storage:
                if snapshot.log_id != storage.log_id():
                    why = "it is of another log"
                elif snapshot.code != code_digest():
                    why = "other code has made it; it is made anew at the next occasion"
                elif sha256(content).hexdigest() != snapshot_digest(self._layout):
                    why = "this user's registry does not know it"
                elif not 0 < tail.position <= storage.tail().position:
                    why = "the log does not go as far"
                else:
                    why = "" if event_at(storage, tail.position).sum == tail.sum else "the log has another sum there"
        except PmagentError as error:
            why = error.message
        return Cached(tail.position, size, tail.time, fits=not why, why=why)
