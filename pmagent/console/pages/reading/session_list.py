"""Sessions of the OA and of the PLA, as the log tells of them, newest first; blocking, for a bounded time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from pmagent.console.pages.reading.searching import until
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import Needles, matching_runs
from pmagent.events.storage import StorageReader
from pmagent.log.query import Query, needles
from pmagent.log.ranges import Found, Range, last_of
from pmagent.log.summaries import payload
from pmagent.projections.runs.paths import SESSIONS
from pmagent.workspace.layout import Layout

Kind = Literal["pla", "oa"]

COUNT: Final = 50
LOOK_SECONDS: Final = 2.0
VALUE_CHARS: Final = 4096
REASON_CHARS: Final = 500
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
    """A session: where and when it began, by whom (the OA's: ""), in which mode; where and when it ended (0: it stands,
    as far as is known), its state in a word, and the reason for it."""

    session_id: str
    position: int
    time: str
    who: str
    mode: str
    state: str = "open"
    reason: str = ""
    ended: int = 0
    ended_time: str = ""


Ends = dict[str, dict[str, Any]]
"""Session id -> the fields of a Row that its end sets."""


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
    ends: Ends = {}
    going = until(LOOK_SECONDS)

    def pick(run: Sequence[StoredEvent]) -> Sequence[Row]:
        _end(ends, run, kind)
        return [_row(event) for event in run if event.type in BEGAN[kind]]

    with closing(layout.store.reader()) as storage:
        found = last_of(storage, Range(1, before - 1 if before else end, ""), pick, COUNT, going, NEEDLES[kind])
        if before:
            _look_on(storage, before, end, kind, ends, {row.session_id for row in found.events}, going)
    rows = [_ended(row, ends.get(row.session_id)) for row in reversed(found.events)]
    outside = _outside(layout.workspace) if kind == "pla" and not before else []
    return Listing(rows, found.first, _older(found), found.cut, found.trouble, outside)


def _older(found: Found[Row]) -> bool:
    return found.first > 1 and (found.cut or len(found.events) == COUNT)


def _look_on(
    storage: StorageReader, start: int, end: int, kind: Kind, ends: Ends, wanted: set[str], going: Callable[[], bool],
) -> None:  # fmt: skip
    """Ends of the wanted sessions that lie behind what is shown, as long as there is time."""
    try:
        for run, _ in matching_runs(storage, start, end, NEEDLES[kind]):
            _end(ends, run, kind, wanted)
            if wanted <= ends.keys() or not going():
                return
    except CorruptLog:  # the page of the log, and Integrity, say where; a session without an end is shown as that
        return


def _end(ends: Ends, run: Sequence[StoredEvent], kind: Kind, wanted: set[str] | None = None) -> None:
    """Note the ends among some events."""
    for event in run:
        if event.type == ENDED[kind]:
            data = payload(event)
            name = _text(data, "session_id")
            if wanted is None or name in wanted:
                ends.setdefault(name, {
                    "state": _text(data, "state") or "ended", "reason": _text(data, "reason")[:REASON_CHARS],
                    "ended": event.position, "ended_time": event.time,
                })  # fmt: skip


def _row(event: StoredEvent) -> Row:
    """A session that began, as if it stood."""
    data = payload(event)
    row = Row(_text(data, "session_id"), event.position, event.time, _text(data, "operator_id"), _text(data, "mode"))
    if event.type != "oa.boot_refused":
        return row
    listed = data.get("reasons")
    texts = [str(one.get("text", "")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return msgspec.structs.replace(row, state="refused", reason="; ".join(texts)[:REASON_CHARS])


def _ended(row: Row, end: dict[str, Any] | None) -> Row:
    if end is None or end["ended"] < row.position or row.state == "refused":
        return row
    return msgspec.structs.replace(row, **end)


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    return value[:VALUE_CHARS] if isinstance(value, str) else ""


def began(
    storage: StorageReader, kind: Kind, session_id: str, end: int, going: Callable[[], bool]
) -> StoredEvent | None:
    """The last event up to ``end`` with which a session of this id began; None where there is none.

    Raises CorruptLog, and NotFound where there was no time to look at all of the log.
    """

    def pick(run: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        return [event for event in run if event.type in BEGAN[kind] and payload(event).get("session_id") == session_id]

    named = [b'"session_id":' + msgspec.json.encode(session_id.encode("utf-8", "replace").decode())]
    found = last_of(storage, Range(1, end, ""), pick, 1, going, [*NEEDLES[kind], named])
    if found.trouble is not None and not found.events:
        raise found.trouble
    if found.cut:
        what = f"no session {session_id[:64]!r} began from position {found.first} on; there was no time to look further"
        raise NotFound(what, f"pmagent log tail -n 1 --type {BEGAN[kind][0]} data.session_id=… looks at all of the log")
    return found.events[0] if found.events else None


def _outside(workspace: Path) -> list[str]:
    names = sorted(
        (path.name.removesuffix(".jsonl") for path in (workspace / SESSIONS).glob("outside-*.jsonl")),
        key=lambda name: (len(name), name), reverse=True,
    )  # fmt: skip
    return [name for name in names if name.removeprefix("outside-").isdigit()][:FILES_MAX]
