"""Templates of frequent decisions: how often operators have approved exactly such a call (docs/guests.md)."""

from __future__ import annotations

from contextlib import closing
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.guests.matching import exact
from pmagent.contracts.guest_calls import Call
from pmagent.events.event import time_after
from pmagent.events.store import LogStore
from pmagent.guests.past_calls import events_of
from pmagent.guests.what_if import LATEST, TRIED_DAYS
from pmagent.log.source import position_at_time, time_at

OFTEN: Final = 3
"""Exactly such calls that operators have approved so often, and rejected never, make a template."""
USES: Final = 5
"""So many further calls its rule lets through ..."""
SECONDS: Final = 8 * 3600
"""... within so long, unless the operator says otherwise."""
_ASKED: Final = "guest.call_asked"
_GIVEN: Final = "guest.approval_given"
_REJECTED: Final = "guest.approval_rejected"


class Frequent(NamedTuple):
    """A decision that operators have made ``approved`` times since a moment; ``rule`` would make it for them."""

    rule: str
    approved: int
    since: str


class _Asked(msgspec.Struct):
    facts: Call | None = None


class _Answered(msgspec.Struct):
    approval: int


_asked: Final = msgspec.json.Decoder(_Asked).decode
_answered: Final = msgspec.json.Decoder(_Answered).decode


def frequent(store: LogStore, call: Call, now: str) -> Frequent | None:
    """The template that fits ``call``; None: operators have rejected such a call, or have not approved it often, in the
    last days, as far as the newest events reach. Blocking. Raises NotFound, CorruptLog."""
    rule, since = exact(call), time_after(now, -TRIED_DAYS * 24 * 3600.0)
    if not rule:
        return None
    with closing(store.reader()) as log:
        start, newest = position_at_time(log, since), log.tail().position - LATEST
        if newest > start:
            start, since = newest, time_at(log, newest)
    same, approved = set[int](), set[int]()
    for event in events_of(store, start, (_ASKED, _GIVEN, _REJECTED)):
        if event.type == _ASKED:
            facts = _asked(event.data).facts  # None of a large one, which is like no other
            if facts is not None and exact(facts) == rule:
                same.add(event.position)
        elif (number := _answered(event.data).approval) in same:
            if event.type == _REJECTED:
                return None
            approved.add(number)
    return Frequent(rule, len(approved), since) if len(approved) >= OFTEN else None
