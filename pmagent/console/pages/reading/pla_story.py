"""One session of the PLA: its log on disk, checked and held against the workspace's, and what the log tells of it."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, BinaryIO, Final

import msgspec

from pmagent.console.pages.reading.searching import until
from pmagent.console.pages.reading.session_list import began
from pmagent.contracts.payload import BlobSource, typed, types
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.reader import event_at, matching_runs
from pmagent.events.storage import LogReader
from pmagent.log.query import Query, needles
from pmagent.log.ranges import Range, last_of
from pmagent.log.summaries import payload
from pmagent.pla.verifying import LINE_BYTES_MAX, SessionLogUnreadable, Verdict, verify_stream
from pmagent.projections.sessions.chain import Chain
from pmagent.projections.sessions.entries import answered
from pmagent.projections.sessions.paths import job_path, log_path, usable, violations_path
from pmagent.projections.sessions.sessions import ASKED_KEPT, SESSIONS_KEPT, Sessions, SessionsView
from pmagent.projections.views.sessions import Session
from pmagent.workspace.layout import Layout

LOOK_SECONDS: Final = 3.0
"""So long is gone through the workspace's log for one session."""
LOG_BYTES_MAX: Final = 8 * 2**20
"""A longer session log is checked by the command."""
ENTRIES_SHOWN: Final = 200
TOLD_MAX: Final = 200
"""So many proposals, frames and violations are told of, the newest."""
JOB_BYTES_MAX: Final = 64 * 1024

_BEGAN: Final = "pla.session_began"
_TOLD: Final = ("pla.*", "hid.outcome*")
_REQUESTS: Final = frozenset((
    "pla.mode_requested", "pla.end_requested", "pla.decision_requested", "pla.arm_requested", "pla.disarm_requested",
    "pla.proposal_requested", "pla.observe_requested",
))  # fmt: skip
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(msgspec.Struct, frozen=True):
    """A line of the session log: its number, the entry (None where it is none), the text as it stands there."""

    number: int
    entry: dict[str, Any] | None
    text: str


class Proposal(msgspec.Struct):
    """A proposal of the session and what became of it; events are StoredEvents' data with their positions."""

    position: int
    data: dict[str, Any]
    decided: int = 0
    decision: dict[str, Any] = {}
    closed: int = 0
    outcome: str = ""
    why: str = ""


class Piece(msgspec.Struct, frozen=True):
    """Something that the log tells: where, when, and what."""

    position: int
    time: str
    data: dict[str, Any]


class LogPart(msgspec.Struct):
    """A session in the workspace's log. ``looked``: up to which position; ``cut``: there was no time for the rest;
    ``trouble``: it is corrupt there."""

    began: StoredEvent | None = None
    ended: StoredEvent | None = None
    mode: str = ""
    proposals: dict[str, Proposal] = {}
    frames: dict[int, Piece] = {}
    observed: list[Any] = []
    violations: list[Piece] = []
    looked: int = 0
    cut: bool = False
    trouble: PmagentError | None = None


class Story(msgspec.Struct, frozen=True):
    """All of it. ``verdict`` None: there is no session log, or ``unread`` says why it was not looked at. ``answered``:
    the positions of violations that are answers to an operator's own request."""

    session_id: str
    told: LogPart
    verdict: Verdict | None
    unread: str
    violations: Verdict | None
    answered: set[int]
    entries: list[Entry]
    first: int
    job: dict[str, Any] | None


def story(layout: Layout, session_id: str, first: int) -> Story:
    """The session, with its entries from the ``first`` on. Raises NotFound where nobody knows of it, CorruptLog."""
    if not usable(session_id):
        raise NotFound(f"{session_id[:64]!r} is no session's id", "Sessions lists them")
    content, unread = _looked_at(layout, log_path(session_id))
    violations, also = _looked_at(layout, violations_path(session_id))
    log_part, law = _from_log(layout, session_id, content)
    if log_part.began is None and content is None and not unread:
        raise log_part.trouble or NotFound(f"the log tells of no session {session_id!r}", "Sessions lists them")
    return Story(
        session_id, log_part, _verdict(content, law.log if law is not None else None), unread or also,
        _verdict(violations, law.violations if law is not None else None),
        answered(b"".join(law.violations.content.pieces())) if law is not None else set(),
        _entries(content or b"", first), first, _job(layout, session_id),
    )  # fmt: skip


def _verdict(content: bytes | None, law: Chain | None) -> Verdict | None:
    """Whether a file is what ``law`` says, or by itself where that is not known; None where there is none."""
    if content is None:
        return None
    return verify_stream(io.BytesIO(content), law.content.pieces() if law is not None else None, len(content))


def _looked_at(layout: Layout, path: str) -> tuple[bytes | None, str]:
    """A session log, and why it was not looked at."""
    try:
        return _content(layout, path), ""
    except SessionLogUnreadable as error:
        return None, f"{error.message}. {error.hint}"


def log_of(layout: Layout, session_id: str) -> bytes | None:
    """The session log as it is now; None where there is none. Raises SessionLogUnreadable."""
    return _content(layout, log_path(session_id)) if usable(session_id) else None


# --- files -----------------------------------------------------------------------------------------------------------


def _content(layout: Layout, path: str) -> bytes | None:
    """A session log as it is now; None where there is none. Raises SessionLogUnreadable."""
    try:
        with _opened(layout, path) as file:
            content = file.read(LOG_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionLogUnreadable(f"{path} cannot be read: {error.strerror}", "it must be a regular file") from error
    if len(content) > LOG_BYTES_MAX:
        raise SessionLogUnreadable(f"{path} is longer than a page takes", f"pmagent pla verify-log {path}")
    return content


def _opened(layout: Layout, path: str) -> BinaryIO:
    """A regular file of the workspace; through no link. Raises OSError."""
    file = os.open(layout.workspace / path, _FILE)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(0, "it is no regular file")
    return open(file, "rb")


def _entries(content: bytes, first: int) -> list[Entry]:
    shown: list[Entry] = []
    for number, line in enumerate(io.BytesIO(content), 1):
        if number >= first + ENTRIES_SHOWN:
            break
        if number >= first:
            shown.append(Entry(number, _entry(line), line[:LINE_BYTES_MAX].decode("utf-8", "backslashreplace")))
    return shown


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _job(layout: Layout, session_id: str) -> dict[str, Any] | None:
    try:
        with _opened(layout, job_path(session_id)) as file:
            return _entry(file.read(JOB_BYTES_MAX))
    except OSError:  # it is a projection: Integrity says whether it is there
        return None


# --- the workspace's log ---------------------------------------------------------------------------------------------


def _from_log(layout: Layout, session_id: str, content: bytes | None) -> tuple[LogPart, Session | None]:
    """The log's part, and the session as its documents must show it (None where that is not known)."""
    story, going = LogPart(), until(LOOK_SECONDS)
    store = layout.store
    with closing(store.reader()) as storage:
        try:
            story.began = _began(storage, session_id, content, going)
            if story.began is None:
                return story, None
            fold = _Fold(storage, store.blobs(), story.began, going)
            _go_through(storage, story, fold, session_id, going)
            story.trouble = fold.trouble
        except PmagentError as error:
            story.trouble = error
            return story, None
        return story, None if story.cut else fold.session(session_id)


def _go_through(storage: LogReader, story: LogPart, fold: _Fold, session_id: str, going: Callable[[], bool]) -> None:
    assert story.began is not None, "it was found"
    for run, through in matching_runs(storage, story.began.position, storage.tail().position, [fold.needles]):
        for event in run:
            _add(story, event, session_id)
            fold.take(event)
        story.looked = through
        if story.ended is not None:
            return
        if not going() and story.looked < storage.tail().position:
            story.cut = True
            return


def _began(storage: LogReader, session_id: str, content: bytes | None, going: Callable[[], bool]) -> StoredEvent | None:
    """The event with which the session began: where its log says so, else the last one found."""
    end = storage.tail().position
    entry = _entry((content or b"").partition(b"\n")[0]) or {}
    details = entry.get("details")
    hint = details.get("position") if isinstance(details, dict) else None
    if isinstance(hint, int) and 1 <= hint <= end:
        found = event_at(storage, hint)
        if _begins(found, session_id):
            return found
    return began(storage, "pla", session_id, end, going)


def _begins(event: StoredEvent, session_id: str) -> bool:
    return event.type == _BEGAN and payload(event).get("session_id") == session_id


def _add(story: LogPart, event: StoredEvent, session_id: str) -> None:
    """Add what an event tells of the session."""
    if event.type == "pla.frame_observed":
        _put(story.frames, event.position, Piece(event.position, event.time, payload(event)))
        return
    if not event.type.startswith(("pla.", "hid.outcome")):
        return
    data = payload(event)
    if data.get("session_id") != session_id:
        return
    name = str(data.get("proposal_id", ""))
    known = story.proposals.get(name)
    match event.type:
        case "pla.session_ended":
            story.ended = event
        case "pla.mode_changed":
            story.mode = str(data.get("mode", ""))
        case "pla.violation":
            story.violations = [*story.violations[1 - TOLD_MAX :], Piece(event.position, event.time, data)]
        case "pla.proposed":
            _put(story.proposals, name, Proposal(event.position, data))
        case "pla.approved" | "pla.rejected" if known is not None:
            known.decided, known.decision = event.position, {**data, "word": event.type[4:]}
        case "pla.observed":
            story.observed = [*story.observed[1 - TOLD_MAX :], data.get("frame")]
        case "pla.proposal_closed" if known is not None:
            known.closed, known.outcome = event.position, str(data.get("outcome", ""))
            known.why = str(data.get("why", ""))


def _put(held: dict[Any, Any], key: Any, value: Any) -> None:
    held[key] = value
    if len(held) > TOLD_MAX:
        del held[next(iter(held))]


def used_frames(story: LogPart) -> list[Piece]:
    """The frames on which proposals of the session rest, and those that somebody looked at."""
    named = {proposal.data.get("frame") for proposal in story.proposals.values()} | {*story.observed}
    return [frame for position, frame in story.frames.items() if position in named]


class _Fold:
    """The session's documents, folded from where it began, and from what is still remembered then of before: requests,
    and which sessions were over. So much is needed for just what folding the whole log would give."""

    def __init__(self, storage: LogReader, blobs: BlobSource, began: StoredEvent, going: Callable[[], bool]) -> None:
        self._blobs = blobs
        self._projection = Sessions()
        self._state = SessionsView(storage.log_id())
        known = types()
        self._heard = {name for name, cls in known.items() if cls in self._projection.hears}
        (self.needles,) = needles(Query(types=[*_TOLD, *sorted(self._heard)]))
        span, asked = Range(1, began.position - 1, ""), needles(Query(types=[*_REQUESTS]))
        before = last_of(storage, span, _requests, ASKED_KEPT, going, asked)
        earlier = last_of(storage, span, _beginnings, SESSIONS_KEPT, going, needles(Query(types=[_BEGAN])))
        self._whole = not (before.cut or earlier.cut)
        self.trouble: PmagentError | None = before.trouble or earlier.trouble
        names = {str(payload(event).get("session_id")): event.time for event in earlier.events}
        over = [Session(name, time, state="complete") for name, time in names.items()]
        self._state = msgspec.structs.replace(self._state, sessions={one.session_id: one for one in over})
        for event in before.events:
            self.take(event)

    def take(self, event: StoredEvent) -> None:
        """Fold one event more; of what cannot be folded nothing more is known."""
        if self.trouble is not None or not self._whole or event.type not in self._heard:
            return
        try:
            self._state = self._projection.evolve(self._state, typed(event, self._blobs), event.sum)
        except PmagentError as error:
            self.trouble = error

    def session(self, session_id: str) -> Session | None:
        """The session; None where it is not known for certain."""
        return self._state.sessions.get(session_id) if self._whole and self.trouble is None else None


def _requests(run: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
    return [event for event in run if event.type in _REQUESTS]


def _beginnings(run: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
    return [event for event in run if event.type == _BEGAN]
