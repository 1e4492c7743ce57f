"""What a stream tells of a run of events, as server-sent events (WHATWG HTML, section 9.2.6). Pure.

Each message carries as its id the last position that it covers, so that a browser that comes back with it in
``Last-Event-ID`` is told the rest, and nothing twice: a browser forgets a message of which it did not get the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from events.event import StoredEvent
from pmagent.console.lines import rows
from pmagent.console.live.feed import Run
from pmagent.console.live.filters import Wanted

TYPES_MAX: Final = 50
"""So many different types a message names at most; more make every part of a page stale anyway."""

_encode = msgspec.json.Encoder().encode


def message(event: str, data: Any, position: int | None = None) -> bytes:
    """One event of a stream. JSON has no line breaks, so none in ``data`` can end it early."""
    id = b"" if position is None else b"id: %d\n" % position
    return b"event: %b\n%bdata: %b\n\n" % (event.encode(), id, _encode(data))


def at(position: int, time: str) -> bytes:
    """How far the log is."""
    return message("at", {"position": position, "time": time}, position)


def over(why: str, text: str) -> bytes:
    """The last message: nothing more comes, and why: ``ended`` (come back), ``until`` (nothing later is wanted), else
    what is wrong with the log, or with who asks."""
    return message("over", {"why": why, "text": text})


def changed(position: int, types: Sequence[str]) -> bytes:
    """Events of these types came up to ``position``; none named: of any. It has no id: an ``at`` with it follows, and
    what is told twice here does no harm."""
    return message("changed", {"position": position, "types": types})


class Teller(Protocol):
    """What one kind of stream tells."""

    wanted: Wanted | None
    """Where it ends; None: nowhere."""
    skips: bool
    """Whether it is enough to say of very much that it has happened."""

    def tell(self, run: Run, position: int) -> bytes:
        """The messages about the events of ``run`` behind ``position``; b"" when none is of interest."""
        ...


class Changes:
    """Which types of event came, of those that begin with one of ``topics``."""

    wanted: Wanted | None = None

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = tuple(sorted(set(topics)))
        self.skips = bool(topics)

    def tell(self, run: Run, position: int) -> bytes:
        """See Teller."""
        if position < run.first:
            return run.made(("changed", self._topics), self._make)
        return self._make(run.behind(position))

    def _make(self, events: Sequence[StoredEvent]) -> bytes:
        if not self._topics:
            return b""
        types = sorted({event.type for event in events if event.type.startswith(self._topics)})
        return changed(events[-1].position, types[:TYPES_MAX]) if types else b""


class Lines:
    """The events that are ``wanted``, as rows of the log page; before them the ``changes`` to the rest of that page."""

    skips = False

    def __init__(self, wanted: Wanted, changes: Changes) -> None:
        self.wanted: Wanted | None = wanted
        self._wanted = wanted
        self._changes = changes

    def tell(self, run: Run, position: int) -> bytes:
        """See Teller."""
        changes = self._changes.tell(run, position)
        if position < run.first:
            return changes + run.made(("lines", self._wanted.key), self._make)
        return changes + self._make(run.behind(position))

    def _make(self, events: Sequence[StoredEvent]) -> bytes:
        beyond, matches = self._wanted.beyond, self._wanted.matches
        found = [event for event in events if not beyond(event) and matches(event)]
        if not found:
            return b""
        position = events[-1].position
        return message("lines", {"html": str(rows(found)), "count": len(found), "position": position}, position)
