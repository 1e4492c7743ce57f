"""Sessions of the OA and of the PLA, as the log tells of them, newest first; blocking, for a bounded time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from events.errors import CorruptLog, PmagentError
from events.event import StoredEvent
from events.storage import StorageReader
from pmagent.console.searching import until
from pmagent.layout import Layout
from pmagent.log.query import Query, needles
from pmagent.log.ranges import Found, Range, last_of
from pmagent.log.source import Needles, opened, sifted
from projections.runs.places import SESSIONS

Kind = Literal["pla", "oa"]

COUNT: Final = 50
LOOK_SECONDS: Final = 2.0
FILES_MAX: Final = 200
"""So many session logs are named that belong to no session."""
BEGAN: Final[dict[Kind, tuple[str, ...]]] = {
    "pla": ("pla.session_began",), "oa": ("oa.session_booted", "oa.boot_refused"),
}  # fmt: skip
ENDED: Final[dict[Kind, str]] = {"pla": "pla.session_ended", "oa": "oa.session_ended"}

NEEDLES: Final[dict[Kind, Needles]] = {
    kind: needles(Query(types=[*BEGAN[kind], ENDED[kind]])) for kind in BEGAN
}  # fmt: skip


class Row(msgspec.Struct, frozen=True):
    """A session: where it began, by whom (the OA's: ""), in which mode; ``ended`` None: it stands, as far as is known.
    ``state`` in a word, ``reason`` for it."""

    session_id: str
    began: StoredEvent
    ended: StoredEvent | None
    who: str
    mode: str
    state: str
    reason: str


class Listing(msgspec.Struct, frozen=True):
    """Rows, and how far back was looked for them (``first``); ``older``: there may be more before. ``outside``: session
    logs on disk of what was said outside of sessions."""

    rows: list[Row]
    first: int
    older: bool
    cut: bool
    trouble: PmagentError | None
    outside: list[str]


def listed(layout: Layout, kind: Kind, before: int, end: int) -> Listing:
    """The last sessions that began before the position ``before`` (0: any) in a log that goes to ``end``.

    Raises NotFound, CorruptLog.
    """
    ends: dict[str, StoredEvent] = {}
    going = until(LOOK_SECONDS)

    def pick(run: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        for event in run:
            if event.type == ENDED[kind]:
                ends.setdefault(_data(event, "session_id"), event)
        return [event for event in run if event.type in BEGAN[kind]]

    with opened(layout.log) as storage:
        found = last_of(storage, Range(1, before - 1 if before else end, ""), pick, COUNT, going, NEEDLES[kind])
        if before:
            _look_on(storage, before, end, kind, ends, going)
    rows = [_row(event, ends) for event in reversed(found.events)]
    outside = _outside(layout.workspace) if kind == "pla" and not before else []
    return Listing(rows, found.first, _older(found), found.cut, found.trouble, outside)


def _older(found: Found) -> bool:
    return found.first > 1 and (found.cut or len(found.events) == COUNT)


def _look_on(
    storage: StorageReader, start: int, end: int, kind: Kind, ends: dict[str, StoredEvent], going: Callable[[], bool]
) -> None:
    """Ends of sessions that lie behind what is shown, as long as there is time."""
    try:
        for run, _ in sifted(storage, start, end, NEEDLES[kind]):
            for event in run:
                if event.type == ENDED[kind]:
                    ends.setdefault(_data(event, "session_id"), event)
            if not going():
                return
    except CorruptLog:  # the page of the log, and Integrity, say where; a session without an end is shown as that
        return


def _row(began: StoredEvent, ends: dict[str, StoredEvent]) -> Row:
    session_id, mode = _data(began, "session_id"), _data(began, "mode")
    who = _data(began, "operator_id") if began.type == "pla.session_began" else ""
    if began.type == "oa.boot_refused":
        return Row(session_id, began, began, who, mode, "refused", _reasons(began))
    ended = ends.get(session_id)
    if ended is None or ended.position < began.position:
        return Row(session_id, began, None, who, mode, "open", "")
    return Row(session_id, began, ended, who, mode, _data(ended, "state") or "ended", _data(ended, "reason"))


def _reasons(event: StoredEvent) -> str:
    listed = payload(event).get("reasons")
    texts = [str(one.get("text", "")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return "; ".join(texts)[:2000]


def payload(event: StoredEvent) -> dict[str, Any]:
    """The event's data as decoded JSON, whatever it holds; {} where that is no object."""
    try:
        found = msgspec.json.decode(event.data)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _data(event: StoredEvent, name: str) -> str:
    value = payload(event).get(name)
    return value if isinstance(value, str) else ""


def began(
    storage: StorageReader, kind: Kind, session_id: str, end: int, going: Callable[[], bool]
) -> StoredEvent | None:
    """The last event up to ``end`` with which a session of this id began; None where none is found in time.

    Raises CorruptLog.
    """

    def pick(run: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        return [event for event in run if event.type in BEGAN[kind] and _data(event, "session_id") == session_id]

    named = [b'"session_id":' + msgspec.json.encode(session_id.encode("utf-8", "replace").decode())]
    found = last_of(storage, Range(1, end, ""), pick, 1, going, [*NEEDLES[kind], named])
    if found.trouble is not None and not found.events:
        raise found.trouble
    return found.events[0] if found.events else None


def _outside(workspace: Path) -> list[str]:
    names = sorted(
        (path.name.removesuffix(".jsonl") for path in (workspace / SESSIONS).glob("outside-*.jsonl")),
        key=lambda name: (len(name), name), reverse=True,
    )  # fmt: skip
    return [name for name in names if name.removeprefix("outside-").isdigit()][:FILES_MAX]
