"""Holding a session against its harness's own transcript: which calls did no hook tell of? (docs/guests.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from pmagent.contracts.guests import NAME_CHARS_MAX, TEXT_CHARS_MAX, GuestCallAsked, GuestCallUnseen, GuestFact
from pmagent.contracts.payload import typed
from pmagent.events.reader import matching_runs
from pmagent.events.store import LogStore
from pmagent.guests import transcripts
from pmagent.guests.dialects import Asked, Unheard


class Proof(NamedTuple):
    """Findings in a transcript: how many ``calls``, and those that the log does not know."""

    transcript: Literal["read", "none", "unreadable"]
    calls: int = 0
    unseen: list[Asked] = []


def held(store: LogStore, harness: str, session: str, transcript: str) -> Proof:
    """The session of the log, held against the file ``transcript`` ("": the harness keeps none). A call counts as seen
    when it was asked under its own id. A line that is not understood makes it unreadable."""
    if not transcript or harness not in transcripts.READERS:
        return Proof("none")
    path = Path(transcript)
    try:
        if not path.is_file():
            return Proof("none")
        asked = list[Asked]()
        for _, heard in transcripts.entries(harness, path):
            if isinstance(heard, Unheard):
                return Proof("unreadable")
            if isinstance(heard, Asked):
                asked.append(heard)
    except OSError:
        return Proof("unreadable")
    known = set(_asked(store, session))
    return Proof("read", len(asked), [one for one in asked if (one.agent, one.call) not in known])


def _asked(store: LogStore, session: str) -> Iterator[tuple[str, str]]:
    """The agent and id of each call that was asked in a session. Only stretches of the log that name it are read."""
    name = msgspec.json.encode("guest.call_asked")
    with closing(store.reader()) as log:
        for run, _ in matching_runs(log, 1, log.tail().position, ([msgspec.json.encode(session)], [name])):
            for stored in run:
                if stored.correlation == session and stored.type == "guest.call_asked":
                    data = typed(stored, store.blobs()).data
                    if isinstance(data, GuestCallAsked):
                        yield data.facts.agent, data.call


def unseen(call: Asked, common: dict[str, Any], masked: Callable[[str], str]) -> GuestFact:
    """The fact of a call that no hook told of; ``common``: the fields of all facts of its session."""
    given = masked(msgspec.json.encode(call.tool_input).decode())
    return GuestCallUnseen(
        **common, call=call.call[:NAME_CHARS_MAX], tool=call.tool[:NAME_CHARS_MAX], agent=call.agent[:NAME_CHARS_MAX],
        input=given[:TEXT_CHARS_MAX],
    )
