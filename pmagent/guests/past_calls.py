"""The calls that a log holds, with their verdicts, as far as judging them by another policy needs (docs/guests.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import msgspec

from pmagent.contracts.guest_calls import Answer, Call
from pmagent.contracts.guests import GuestCallAsked
from pmagent.contracts.payload import typed
from pmagent.events.event import StoredEvent
from pmagent.events.reader import collector_at_rest, matching_runs
from pmagent.events.store import LogStore

_ASKED: Final = "guest.call_asked"
_DECIDED: Final = "guest.call_decided"
_REFUSED: Final = ("guest.call_closed", "guest.approval_rejected")


class _Asked(msgspec.Struct):
    """The fields needed of a call that was asked."""

    session: str = ""
    source: str = "live"
    seen: str = ""
    facts: msgspec.Raw = msgspec.Raw()


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


_call: Final = msgspec.json.Decoder(Call).decode
_asked: Final = msgspec.json.Decoder(_Asked).decode
_decided: Final = msgspec.json.Decoder(Decided).decode
_refused: Final = msgspec.json.Decoder(_Refused).decode


class PastCall:
    """A call that the log holds, at ``position``. ``decided``: None of one that was imported: nobody judged it."""

    __slots__ = ("_facts", "decided", "position", "session", "time")

    def __init__(self, position: int, time: str, session: str, facts: bytes) -> None:
        self.position = position
        self.time = time
        self.session = session
        self.decided: Decided | None = None
        self._facts = facts

    @property
    def call(self) -> Call:
        """The call as its verdict needs it."""
        return _call(self._facts)

    @property
    def mode(self) -> str:
        """The kernel's mode in which it is judged."""
        return "NORMAL" if self.decided is None else self.decided.mode

    def like(self, *, hour: bool) -> bytes:
        """Calls of which this is the same differ in their session at most, and, unless it matters, in their ``hour``.

        It is the facts' JSON without these members. Within a text quotes are escaped, so each stands there once."""
        facts = self._facts.replace(b'"session":"%b",' % self.session.encode(), b"", 1)
        at = -1 if hour else facts.rfind(b'"hour":')
        return facts if at < 0 else facts[:at] + facts[facts.find(b",", at) :]


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
            if not bytes(asked.facts):  # a large payload
                asked = _whole(event, store)
            past = PastCall(event.position, asked.seen or event.time, asked.session, bytes(asked.facts))
            if asked.source == "import":
                yield past
            else:
                waiting[event.position] = past
        elif event.type == _DECIDED:
            decided = _decided(event.data)
            if decided.request in waiting:
                past = waiting.pop(decided.request)
                past.decided = decided
                yield past
        elif rejected is not None and (refused := _refused(event.data)).end == "refused":
            rejected.add(refused.call_asked or refused.approval)


def _whole(event: StoredEvent, store: LogStore) -> _Asked:
    data = typed(event, store.blobs()).data
    assert isinstance(data, GuestCallAsked)
    facts = msgspec.Raw(msgspec.json.encode(data.facts))
    return _Asked(session=data.session, source=data.source, seen=data.seen, facts=facts)


def events_of(store: LogStore, start: int, types: tuple[str, ...]) -> Iterator[StoredEvent]:
    """The events of these types from ``start`` on. Raises NotFound, CorruptLog."""
    needles = [msgspec.json.encode(name) for name in types]
    with closing(store.reader()) as log, collector_at_rest():
        for run, _ in matching_runs(log, start, log.tail().position, (needles,)):
            for event in run:
                if event.type in types:
                    yield event
