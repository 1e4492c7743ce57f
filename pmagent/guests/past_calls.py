"""The calls that a log holds, with their verdicts, as far as judging them by another policy needs (docs/guests.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple

import msgspec

from pmagent.contracts.guest_calls import Answer, Call
from pmagent.contracts.guests import GuestCallAsked
from pmagent.contracts.payload import typed
from pmagent.events.event import StoredEvent
from pmagent.events.reader import collector_at_rest, events_of_types
from pmagent.events.store import LogStore

_ASKED: Final = "guest.call_asked"
_DECIDED: Final = "guest.call_decided"
_REFUSED: Final = ("guest.call_closed", "guest.approval_rejected")


class _Asked(msgspec.Struct):
    """The fields needed of a call that was asked."""

    session: str = ""
    source: str = "live"
    seen: str = ""
    facts: Call | None = None


class Decided(msgspec.Struct):
    """The fields needed of a verdict."""

    request: int
    answer: Answer
    mode: str = ""
    labels: list[str] = []


class _Refused(msgspec.Struct):
    """The fields needed of a call's end, and of an approval's rejection, which has the number of the first call."""

    call_asked: int = 0
    approval: int = 0
    end: str = "refused"


_asked: Final = msgspec.json.Decoder(_Asked).decode
_decided: Final = msgspec.json.Decoder(Decided).decode
_refused: Final = msgspec.json.Decoder(_Refused).decode


class PastCall(NamedTuple):
    """A call that the log holds, at ``position``. ``decided``: None of one that was imported: nobody judged it."""

    position: int
    time: str
    session: str
    call: Call
    decided: Decided | None

    @property
    def mode(self) -> str:
        """The kernel's mode in which it is judged."""
        return "NORMAL" if self.decided is None else self.decided.mode


def past_calls(
    store: LogStore, start: int, last: int, rejected: set[int] | None = None
) -> Iterator[PastCall]:
    """The calls that were asked from the position ``start`` to ``last``; one is ``rejected`` if an operator said no to
    it by then. Raises NotFound, CorruptLog."""
    waiting: dict[int, PastCall] = {}
    for event in events_of(store, start, (_ASKED, _DECIDED, *(() if rejected is None else _REFUSED))):
        if event.position > last and not waiting:
            return
        if event.type == _ASKED:
            if event.position > last:
                continue
            asked = _asked(event.data)
            if asked.facts is None:  # a large payload
                asked = _whole(event, store)
            assert asked.facts is not None, "it is a field of all"
            past = PastCall(event.position, asked.seen or event.time, asked.session, asked.facts, None)
            if asked.source == "import":
                yield past
            else:
                waiting[event.position] = past
        elif event.type == _DECIDED:
            decided = _decided(event.data)
            if decided.request in waiting:
                yield waiting.pop(decided.request)._replace(decided=decided)
        elif rejected is not None and (refused := _refused(event.data)).end == "refused":
            rejected.add(refused.call_asked or refused.approval)


def _whole(event: StoredEvent, store: LogStore) -> _Asked:
    data = typed(event, store.blobs()).data
    assert isinstance(data, GuestCallAsked)
    return _Asked(session=data.session, source=data.source, seen=data.seen, facts=data.facts)


def events_of(store: LogStore, start: int, types: tuple[str, ...]) -> Iterator[StoredEvent]:
    """The events of these types from ``start`` on. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as log, collector_at_rest():
        yield from events_of_types(log, start, types)
