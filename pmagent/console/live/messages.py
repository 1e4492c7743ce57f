"""The streams' messages, as server-sent events (WHATWG HTML, section 9.2.6). Pure.

Messages that must not be lost carry as id the last position that they cover, so that a browser that comes back with it
in ``Last-Event-ID`` is told the rest, and nothing twice: a browser forgets a message of which it did not get the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pmagent.console.live.feed import Run
from pmagent.console.live.packing import NOTHING, Piece, piece
from pmagent.console.live.pulse import Liveness
from pmagent.events.event import StoredEvent

TYPES_MAX: Final = 50
"""So many different types a message names at most; more make every part of a page stale anyway."""

_encode = msgspec.json.Encoder().encode


def message(event: str, data: Any, position: int | None = None) -> Piece:
    """One event of a stream. JSON has no line breaks, so none in ``data`` can end it early."""
    id = b"" if position is None else b"id: %d\n" % position
    return piece(b"event: %b\n%bdata: %b\n\n" % (event.encode(), id, _encode(data)))


def at(position: int, time: str) -> Piece:
    """How far the log is."""
    return message("at", {"position": position, "time": time}, position)


def at_end_of(run: Run) -> Piece:
    """How far the log was at the end of a run."""
    known = run.known("at")
    if known is None:
        known = at(run.last, run.events[-1].time)
        run.keep("at", known)
    return known


def changed(position: int, types: Sequence[str]) -> Piece:
    """Events of these types came up to ``position``; none named: of any. It has no id: an ``at`` with it follows, and
    what is told twice here does no harm."""
    return message("changed", {"position": position, "types": types})


def daemon(state: Liveness) -> Piece:
    """Whether the daemon answers, and since when (not)."""
    return message("daemon", state)


def over(why: str, text: str) -> Piece:
    """The last message: nothing more comes, and why: ``ended`` (come back), ``signed_out``, ``replaced`` (the page is
    of another log), else what is wrong with the log, or with what is asked for."""
    return message("over", {"why": why, "text": text})


class Topics:
    """Which types of event came, of those that begin with one of ``beginnings``; none: nothing is told of types."""

    def __init__(self, beginnings: Sequence[str]) -> None:
        self._beginnings = tuple(sorted(set(beginnings)))
        self._key = ("changed", self._beginnings)

    def tell(self, run: Run, position: int) -> Piece:
        """The changes by the events of ``run`` behind ``position``; ``NOTHING`` for none."""
        if not self._beginnings:
            return NOTHING
        if position >= run.first:
            return self._made(run.behind(position))
        known = run.known(self._key)
        if known is None:
            known = self._made(run.events)
            run.keep(self._key, known)
        return known

    def _made(self, events: Sequence[StoredEvent]) -> Piece:
        types = sorted({event.type for event in events if event.type.startswith(self._beginnings)})
        return changed(events[-1].position, types[:TYPES_MAX]) if types else NOTHING

    def skip(self, position: int) -> Piece:
        """That so much has happened up to ``position`` that it is not looked at: whatever is shown is stale."""
        return changed(position, []) if self._beginnings else NOTHING
