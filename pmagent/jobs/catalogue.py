"""An index of a log's jobs, built as the log is read, for lists that are shown again and again (docs/design.md §7).

It reads back only as far as a query needs, and no event twice; so a page costs only the events that are new.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from pmagent.contracts.control import Pruned
from pmagent.contracts.payload import typed
from pmagent.events.errors import CorruptLog, PmagentError
from pmagent.events.event import Event, StoredEvent, Tail
from pmagent.events.reader import event_at, matching_runs
from pmagent.events.storage import BLOB_PREFIX
from pmagent.jobs.history import ID_CHARS, Jobs, NoSuchJob, opened, still_holds
from pmagent.jobs.kinds import Kind
from pmagent.jobs.registry import KINDS
from pmagent.projections.views.jobs import End
from pmagent.workspace.layout import Layout

TITLE_CHARS: Final = 300
"""So much of what a job is about is remembered."""
REASONS_MAX: Final = 3
REASON_CHARS: Final = 200
"""So many of the reasons why a job ended, and so much of each."""
KEPT_MAX: Final = 50_000
"""So many jobs are remembered, the newest: some 50 MiB."""
ALL: Final = sys.maxsize
"""No bound: for a command, which looks as long as it takes."""
LOOK_EVENTS: Final = 2_000_000
"""So many events that nobody has looked at yet are looked at for one page: about a second."""
WINDOW: Final = 4096
"""It looks back so far first, then twice as far, and so on; never further at once than ``WINDOW_MAX``."""
WINDOW_MAX: Final = 131_072


_ABOUT: Final = {
    kind.requested: msgspec.json.Decoder(msgspec.defstruct("_About", [(kind.about, str)])) for kind in KINDS
}
"""Reads of a request what it is about. The rest may be large, and is not looked at."""
_KINDS: Final = {kind.requested: kind for kind in KINDS}
_ENDS: Final = frozenset().union(*(kind.end_types for kind in KINDS))
_PRUNED: Final = "control.pruned"
_NEEDLES: Final = ([b'"type":"%b"' % one.encode() for one in sorted({*_KINDS, *_ENDS, _PRUNED})],)


class JobPruned(PmagentError, exit_code=1):
    """The thing asked for was given up with its job (``pmagent prune``)."""


class Pruning(NamedTuple):
    """At ``time`` these jobs were pruned."""

    time: str
    jobs: frozenset[str]


class Ending(End, frozen=True, gc=False, kw_only=True):
    """The end, cut short, of the job that was requested at ``request``: at ``position``."""

    request: int
    position: int
    time: str


class Entry(msgspec.Struct, gc=False):
    """A job, requested at ``position``. ``title`` is what it is about, ``whole`` whether that is all of it; ``ending``
    None: it is open. ``pruned``: the log time at which its documents and content were given up; "": they are kept."""

    kind: Kind
    job_id: str
    position: int
    time: str
    title: str
    whole: bool
    ending: Ending | None = None
    pruned: str = ""

    def require_kept(self) -> None:
        """Check that its content is there. Raises JobPruned."""
        if self.pruned:
            word, name = self.kind.word, self.job_id[:8]
            raise JobPruned(
                f"the {word} {name} was pruned on {self.pruned[:10]}: its output and files are gone",
                f"{self.kind.command} {name} shows what the log keeps of it; pmagent re{word} {name} repeats it",
            )

    @property
    def state(self) -> str:
        """In one word: how it ended, else ``open``."""
        return "open" if self.ending is None else self.ending.state

    @property
    def reasons(self) -> list[str]:
        """Why it ended so, in few words."""
        return [] if self.ending is None else self.ending.reasons


class Listing(msgspec.Struct, frozen=True):
    """A page of a list, newest first. ``more``: there are further ones, or there may be. ``looked`` is the position
    down to which the log has been looked through; 1: all of it. ``forgotten``: what is older is not remembered."""

    entries: list[Entry]
    more: bool
    looked: int
    forgotten: bool


class Catalogue:
    """The jobs of the workspace's log, at most ``kept`` of them. ``checks``: each line that is passed by is checked,
    for commands, which look once. It looks
    back ``window`` events first (0: the usual number). For any number of threads."""

    def __init__(self, layout: Layout, kept: int = KEPT_MAX, window: int = 0, *, checks: bool = False) -> None:
        self._layout = layout
        self._kept = kept
        self._checks = checks
        self._first_window = window or WINDOW
        self._lock = threading.Lock()
        self._begin_anew("")

    def _begin_anew(self, log_id: str) -> None:
        self._log_id = log_id
        self._entries: deque[Entry] = deque()
        """By position."""
        self._requests: dict[int, Entry] = {}
        self._called: dict[str, Entry] = {}
        """The newest of each id."""
        self._prunings: list[Pruning] = []
        self._unasked: dict[int, Ending] = {}
        """Ends of requests that have not been read yet, by their positions."""
        self._low = -1
        """Down to there it has been read; -1: nothing has."""
        self._high = Tail()
        self._window = self._first_window
        self._full = False

    # --- asking ---------------------------------------------------------------------------------------------------

    def listed(
        self, kind: Kind, count: int, *, before: int = 0, state: str = "", text: str = "",
        failed: bool = False, look: int = LOOK_EVENTS,
    ) -> Listing:
        """The newest ``count`` jobs of this kind that were asked for before position ``before`` (0: the newest of all),
        are in ``state``, ended without success where only ``failed`` ones are wanted, and are about something with
        ``text`` in it, in whatever case. For it at most about ``look`` events are read that were not before. Raises
        CorruptLog; NotFound where there is no log."""
        wanted = text.casefold()
        found: list[Entry] = []
        with self._lock, opened(self._layout) as jobs:
            self._catch_up(jobs)
            for entry in self._newest_first(jobs, look):
                if entry.kind is not kind or (before and entry.position >= before) or state not in ("", entry.state):
                    continue
                if failed and entry.state not in kind.failures:
                    continue
                if wanted and wanted not in (entry.title if entry.whole else _title(jobs, entry)).casefold():
                    continue
                if len(found) == count:
                    return Listing(found, more=True, looked=self._low, forgotten=False)
                found.append(entry)
            more = self._low > 1 and not self._full
            return Listing(found, more=more, looked=self._low, forgotten=self._full)

    def called(self, kinds: Sequence[Kind], job_id: str, look: int = LOOK_EVENTS) -> Entry:
        """The job of these kinds whose whole id this is; of an id used again, the last. For it at most about ``look``
        events are looked at that were not before. Raises NoSuchJob, CorruptLog; NotFound where there is no log."""
        with self._lock, opened(self._layout) as jobs:
            self._catch_up(jobs)
            while (entry := self._called.get(job_id)) is None or entry.kind not in kinds:
                if not self._looks_back(look):
                    break
                look -= self._look_back(jobs)
            else:
                return entry
            if self._full:  # it may be older than what is remembered
                return Catalogue(self._layout, kept=ALL).called(kinds, job_id, ALL)
            raise self._unknown(kinds, f"{_words(kinds)} {job_id}")

    def prefixed(self, kinds: Sequence[Kind], prefix: str, look: int = LOOK_EVENTS) -> Entry:
        """The one job of these kinds whose id begins so; see ``called``."""
        prefix = prefix.lower()
        if len(prefix) == ID_CHARS:
            return self.called(kinds, prefix, look)
        with self._lock, opened(self._layout) as jobs:
            self._catch_up(jobs)
            while self._looks_back(look):
                look -= self._look_back(jobs)
            found = {one.job_id: one for one in self._entries if one.kind in kinds and one.job_id.startswith(prefix)}
            if not found:
                raise self._unknown(kinds, f"{_words(kinds)} whose id begins with {prefix!r}")
            if len(found) > 1:
                what = f"{len(found)} {_words(kinds, 's')} have ids that begin with {prefix!r}"
                raise NoSuchJob(f"{what}: {', '.join(sorted(found)[:4])}", "give more of it")
            return next(iter(found.values()))

    def _unknown(self, kinds: Sequence[Kind], what: str) -> NoSuchJob:
        lists = ", ".join(kind.command for kind in kinds)
        if self._low <= 1:
            return NoSuchJob(f"there is no {what}", f"{lists} {'list' if len(kinds) > 1 else 'lists'} them")
        return NoSuchJob(
            f"there is no {what} from position {self._low} on; what is older has not been looked at",
            f"ask again to look further back; {lists} looks as long as it takes",
        )

    # --- reading --------------------------------------------------------------------------------------------------

    def _catch_up(self, jobs: Jobs) -> None:
        """Read what has come since, or, the first time, nothing yet. A log that is another one is begun anew."""
        storage = jobs.storage
        tail, log_id = storage.tail(), storage.log_id()
        if log_id != self._log_id or not still_holds(storage, self._high):
            self._begin_anew(log_id)
        if self._low < 0:
            self._low, self._high = tail.position + 1, tail
        if tail.position > self._high.position:
            for found in _read(jobs, self._high.position + 1, tail.position, checks=self._checks):
                self._note(found)
            self._high = tail
        while len(self._entries) > self._kept:
            self._forget(self._entries.popleft())

    def _look_back(self, jobs: Jobs) -> int:
        """Read one window before what has been read; how many events it was."""
        low = max(1, self._low - self._window)
        read = self._low - low
        for found in reversed(_read(jobs, low, self._low - 1, checks=self._checks)):
            self._note_older(found)
        self._unasked = {request: end for request, end in self._unasked.items() if request < low}
        self._low = low
        self._window = min(2 * self._window, WINDOW_MAX)
        self._full = len(self._entries) >= self._kept
        return read

    def _looks_back(self, look: int) -> bool:
        return self._low > 1 and not self._full and look > 0

    def _newest_first(self, jobs: Jobs, look: int) -> Iterator[Entry]:
        yield from reversed(self._entries)
        while self._looks_back(look):
            known = len(self._entries)
            look -= self._look_back(jobs)
            for place in range(len(self._entries) - known - 1, -1, -1):
                yield self._entries[place]

    def _note(self, found: Entry | Ending | Pruning) -> None:
        if isinstance(found, Pruning):
            self._prune(found)
        elif isinstance(found, Entry):
            self._requests[found.position] = self._called[found.job_id] = found
            self._entries.append(found)
        elif (asked := self._requests.get(found.request)) is not None:
            asked.ending = found
        elif found.request < self._low:
            self._unasked[found.request] = found

    def _prune(self, found: Pruning) -> None:
        self._prunings.append(found)
        for name in found.jobs & self._called.keys():
            self._called[name].pruned = found.time

    def _note_older(self, found: Entry | Ending | Pruning) -> None:
        if isinstance(found, Pruning):
            self._prunings.append(found)  # each job that it prunes is older
            return
        if isinstance(found, Ending):
            self._unasked[found.request] = found
            return
        if found.job_id not in self._called:
            found.pruned = next((one.time for one in self._prunings if found.job_id in one.jobs), "")
        found.ending = self._unasked.pop(found.position, None)
        self._requests[found.position] = found
        self._called.setdefault(found.job_id, found)
        self._entries.appendleft(found)

    def _forget(self, entry: Entry) -> None:
        del self._requests[entry.position]
        if self._called.get(entry.job_id) is entry:
            del self._called[entry.job_id]
        self._low, self._full = entry.position + 1, True


def _words(kinds: Sequence[Kind], plural: str = "") -> str:
    return " or ".join(kind.word + plural for kind in kinds)


def _read(jobs: Jobs, low: int, high: int, *, checks: bool) -> list[Entry | Ending | Pruning]:
    """Requests, ends and prunings between two positions: all of them, or none where one is bad. Raises CorruptLog."""
    found: list[Entry | Ending | Pruning] = []
    for events, _ in matching_runs(jobs.storage, low, high, () if checks else _NEEDLES):
        for event in events:
            if (kind := _KINDS.get(event.type)) is not None:
                found.append(_entry(jobs, event, kind))
            elif event.type in _ENDS:
                found.append(_ending(typed(event, jobs.blobs)))
            elif event.type == _PRUNED and isinstance(data := typed(event, jobs.blobs).data, Pruned):
                found.append(Pruning(event.time, frozenset(one.job_id for one in data.jobs)))
    return found


def _ending(event: Event) -> Ending:
    """The part of an end that is remembered."""
    data = event.data
    kind = next(kind for kind in KINDS if event.type in kind.end_types)
    end = kind.end_of(data)
    reasons = [reason[:REASON_CHARS] for reason in end.reasons[:REASONS_MAX]]
    return Ending(
        request=data.request, position=event.position, time=event.time, state=end.state, reasons=reasons, done=end.done,
        failed=end.failed, score=end.score,
    )


def _entry(jobs: Jobs, event: StoredEvent, kind: Kind) -> Entry:
    title = _about(jobs, event)
    return Entry(kind, event.correlation, event.position, event.time, title[:TITLE_CHARS], len(title) <= TITLE_CHARS)


def _title(jobs: Jobs, entry: Entry) -> str:
    """All of what a job is about."""
    return _about(jobs, event_at(jobs.storage, entry.position))


def _about(jobs: Jobs, event: StoredEvent) -> str:
    field, raw = _KINDS[event.type].about, bytes(event.data)
    if raw.startswith(BLOB_PREFIX):
        return str(getattr(typed(event, jobs.blobs).data, field))
    try:
        return str(getattr(_ABOUT[event.type].decode(raw), field))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptLog("", 0, event.position, f"not a {event.type}: {error}") from error
