"""Holding a session against its harness's own transcript: which calls did no hook tell of? (docs/guests.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from pmagent.contracts.guests import NAME_CHARS_MAX, TEXT_CHARS_MAX, GuestCallAsked, GuestCallUnseen, GuestFact
from pmagent.contracts.payload import typed
from pmagent.events.reader import events_of_types
from pmagent.events.store import LogStore
from pmagent.guests import transcripts
from pmagent.guests.dialects import Asked, Unheard
from pmagent.guests.keys import session_of


class Proof(NamedTuple):
    """Findings in a transcript: how many ``calls``, and those that the log does not know."""

    transcript: Literal["read", "none", "unreadable"]
    calls: int = 0
    unseen: list[Asked] = []


def held(
    store: LogStore, harness: str, session: str, transcript: str, digest: Callable[[Asked], str], first: int = 1
) -> Proof:
    """The session of the log, from its ``first`` position on, held against the file ``transcript`` ("": the harness
    keeps none, or the file is that of other sessions). A call counts as seen when it was asked under its own id; one
    whose hook was told no id, when as many of the same ``digest`` were asked. A line that is not understood makes it
    unreadable, and so does a call that was asked under an id that it does not know: it is not whole then."""
    if not transcript or harness not in transcripts.READERS:
        return Proof("none")
    path = Path(transcript)
    try:
        if not path.is_file():
            return Proof("none")
        asked, named = list[Asked](), False
        for _, heard in transcripts.entries(harness, path):
            if isinstance(heard, Unheard):
                return Proof("unreadable")
            if session_of(heard.session) != session:  # a path may lead to another's
                continue
            named = True
            if isinstance(heard, Asked):
                asked.append(heard)
    except OSError:
        return Proof("unreadable")
    if not named:
        return Proof("none")
    told = {(one.agent, one.call) for one in asked}
    known, folders, unnamed = set[tuple[str, str]](), dict[str, None](), Counter[str]()
    for one in _asked(store, session, first):
        known.add((one.facts.agent, one.call))
        if not one.call:
            folders[one.facts.cwd] = None
            unnamed[one.digest] += 1
        elif (one.facts.agent, one.call) not in told:
            return Proof("unreadable")
    return Proof("read", len(asked), [one for one in asked if (one.agent, one.call) not in known
                                      and not _taken(one, folders, unnamed, digest)])  # fmt: skip


def _taken(call: Asked, folders: Iterable[str], unnamed: Counter[str], digest: Callable[[Asked], str]) -> bool:
    """Whether a call without an id is this one; each counts once. Transcripts need not say in which folder it was."""
    for folder in folders:
        same = digest(msgspec.structs.replace(call, cwd=folder))
        if unnamed[same] > 0:
            unnamed[same] -= 1
            return True
    return False


def _asked(store: LogStore, session: str, first: int) -> Iterator[GuestCallAsked]:
    """The calls that were asked in a session. Only stretches of the log that name it are read."""
    with closing(store.reader()) as log:
        for stored in events_of_types(log, first, ("guest.call_asked",), msgspec.json.encode(session)):
            if stored.correlation == session and isinstance(data := typed(stored, store.blobs()).data, GuestCallAsked):
                yield data


def unseen(call: Asked, common: dict[str, Any], masked: Callable[[str], str]) -> GuestFact:
    """The fact of a call that no hook told of; ``common``: the fields of all facts of its session."""
    given = masked(msgspec.json.encode(call.tool_input).decode())
    return GuestCallUnseen(
        **common, call=call.call[:NAME_CHARS_MAX], tool=call.tool[:NAME_CHARS_MAX], agent=call.agent[:NAME_CHARS_MAX],
        input=given[:TEXT_CHARS_MAX],
    )
