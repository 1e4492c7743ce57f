"""One session of the OA, as the log tells of it; blocking, for a bounded time."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from typing import Any, Final

import msgspec

from pmagent.console.pages.reading.searching import until
from pmagent.console.pages.reading.session_list import began
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import matching_runs
from pmagent.log.query import Query, needles
from pmagent.log.summaries import payload
from pmagent.workspace.layout import Layout

LOOK_SECONDS: Final = 3.0
PERMITS_SHOWN: Final = 100

_PERMITS: Final = ("oa.permit_granted", "oa.permit_refused", "oa.permit_revoked")
_NEEDLES: Final = needles(Query(types=[*_PERMITS, "oa.escalated", "oa.session_ended"]))


class Story(msgspec.Struct, frozen=True):
    """How it began (with its data), how its mode drifted, how it ended; permits that were given, refused and taken back
    while it stood, the newest ones. ``looked``: up to which position; ``cut``: there was no time for the rest."""

    session_id: str
    began: StoredEvent
    data: dict[str, Any]
    escalations: list[tuple[StoredEvent, dict[str, Any]]]
    ended: StoredEvent | None
    reason: str
    permits: list[tuple[StoredEvent, dict[str, Any]]]
    looked: int
    cut: bool
    trouble: PmagentError | None


def story(layout: Layout, session_id: str) -> Story:
    """The session. Raises NotFound where the log tells of none, CorruptLog."""
    going = until(LOOK_SECONDS)
    escalations: list[tuple[StoredEvent, dict[str, Any]]] = []
    permits: deque[StoredEvent] = deque(maxlen=PERMITS_SHOWN)
    ended, cut, trouble = None, False, None
    with closing(layout.store.reader()) as storage:
        first = began(storage, "oa", session_id, storage.tail().position, going)
        if first is None:
            raise NotFound(f"the log tells of no session {session_id[:64]!r}", "Sessions lists them")
        looked = first.position
        try:
            end = storage.tail().position if first.type == "oa.session_booted" else 0
            for run, through in matching_runs(storage, first.position + 1, end, _NEEDLES):
                for event in run:
                    if event.type in _PERMITS:
                        permits.append(event)
                    elif event.type in ("oa.escalated", "oa.session_ended"):
                        data = payload(event)
                        if data.get("session_id") != session_id:
                            continue
                        if event.type == "oa.session_ended":
                            ended = event
                            break
                        escalations = [*escalations[1 - PERMITS_SHOWN :], (event, data)]
                looked = through if ended is None else ended.position
                if ended is not None:
                    break
                if looked < end and not going():
                    cut = True
                    break
        except CorruptLog as error:
            trouble = error
    reason = str(payload(ended).get("reason", "")) if ended is not None else ""
    return Story(
        session_id, first, payload(first), escalations, ended, reason, [(one, payload(one)) for one in permits],
        looked, cut, trouble,
    )
