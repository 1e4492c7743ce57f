"""Replay: the recorded facts go through today's actors, and what these decide is compared with what the log says.

Reading back is the engine's own (``Engine.fold``), so recovery and replay cannot disagree on what follows from what.
Beside it, each reaction is computed anew, and compared by id, actor, type, correlation and data. The recorded decisions
stay the truth: states fold what was recorded, so one difference does not make all that follows differ. So a difference
that a later release lists (``pmagent.contracts.otherwise``) is passed over alone: later decisions are computed from
what was recorded, and compared as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine, HistoryError, about_whom
from pmagent.actors.core.integrity import ENGINE
from pmagent.actors.core.recorded import RecordedReaction
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.otherwise import NOTHING, Entry, Otherwise, counted
from pmagent.contracts.payload import BlobSource, Unknown, typed
from pmagent.events.ahead import long_runs
from pmagent.events.errors import CorruptLog
from pmagent.events.event import Event, StoredEvent, Tail
from pmagent.events.evidence import log_in
from pmagent.events.reader import collector_at_rest
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import StorageReader
from pmagent.replay.divergence import LISTED_MAX, Divergence, DivergenceCount, DivergenceKind, ReplayResult

CHUNK_BYTES: Final = 128 * 1024
"""Read at once: small enough for the events of a chunk to stay in the processor's cache."""


class _Diverged(Exception):
    """The first difference was found, and only that was asked for."""


def replay_log(
    log: str | Path | StorageReader, actors: Sequence[AnyActor], *, until: int | None = None,
    actor: str | None = None, what_if: bool = False, blobs: BlobSource | None = None,
    absent: Collection[str] = (), otherwise: Otherwise = NOTHING,
) -> ReplayResult:
    """Replay ``log`` (its folder, or a storage) with ``actors`` up to position ``until`` (default: all of it).

    ``actor`` compares only that actor's decisions and the engine's about it. ``what_if`` goes on after differences.
    ``absent`` are actors that cannot be asked now: their decisions are not compared, and the result is not equal.
    ``otherwise`` lists differences that are no divergences in decisions of older releases. Large payloads come from
    ``blobs``, by default those beside the log's folder. Memory does not grow with the log. Raises CorruptLog, NotFound.
    """
    if isinstance(log, (str, Path)):
        store = log_in(Path(log))
        with closing(store.reader()) as reader:
            return Replayer(reader, actors, actor, what_if, blobs or store.blobs(), absent, otherwise).run(until)
    return Replayer(log, actors, actor, what_if, blobs, absent, otherwise).run(until)


def fold_log(storage: StorageReader, engine: Engine, start: int = 1, blobs: BlobSource | None = None) -> int:
    """Fold the events from ``start`` on into ``engine``, without comparing; the number of events.

    Raises CorruptLog, HistoryError.
    """
    count = 0
    fold = engine.fold
    with collector_at_rest(), closing(long_runs(storage, start, chunk_bytes=CHUNK_BYTES)) as read:
        for run in read:
            for stored in run:
                fold(typed(stored, blobs))
            count += len(run)
    return count


class Replayer:
    """One replay of ``storage``. The engine's witness: it is told of each reaction as it is read back."""

    def __init__(
        self, storage: StorageReader, actors: Sequence[AnyActor], actor: str | None = None, what_if: bool = False,
        blobs: BlobSource | None = None, absent: Collection[str] = (), otherwise: Otherwise = NOTHING,
    ) -> None:
        self.engine = Engine(actors, Sequencer(Tail()), witness=self)
        self._storage = storage
        self._blobs = blobs
        self._only = actor
        self._what_if = what_if
        self._absent = absent
        self._undecided: set[str] = set()
        self._due: Iterator[Event] = iter(())
        self._expected: list[Event] = []
        self._recorded: list[Event] = []
        self._differs = False
        self._decisions = 0
        self._divergences: list[Divergence] = []
        self._counts: Counter[tuple[str, str, DivergenceKind]] = Counter()
        self._otherwise = otherwise
        self._listed: Counter[Entry] = Counter()
        self._version = ""  # of the pmagent that wrote what is being read; "": not known yet
        self._stopped = ""

    def run(self, until: int | None = None) -> ReplayResult:
        """Replay up to ``until`` and say what was found. Raises CorruptLog."""
        with closing(long_runs(self._storage, 1, until, CHUNK_BYTES)) as read:
            return self.follow((self.typed(stored) for run in read for stored in run), whole=until is None)

    def follow(self, events: Iterable[Event], *, whole: bool) -> ReplayResult:
        """Replay ``events``, which come next, and say what was found; ``whole``: the log ends with them."""
        unfinished = 0
        fold = self.engine.fold
        try:
            for event in events:
                fold(event)
                if type(event.data) is DaemonStarted and event.kind == "fact":  # what follows from it is its own
                    self._version = event.data.version
            self._conclude(complete=False)
            if whole and not self._divergences:
                unfinished = len(self.engine.complete("").events)
        except _Diverged:
            pass
        except HistoryError as error:
            self._stop(error)
        position = self.engine.sequencer.position
        return ReplayResult(
            events=position, decisions=self._decisions, position=position, unfinished=unfinished,
            divergences=self._divergences, stopped=self._stopped, undecided=sorted(self._undecided),
            counts=[DivergenceCount(*key, number) for key, number in sorted(self._counts.items())],
            otherwise=counted(self._listed),
        )

    def typed(self, stored: StoredEvent) -> Event:
        """The event as actors see it. Raises CorruptLog."""
        try:
            return typed(stored, self._blobs)
        except CorruptLog:
            if stored.kind == "fact":
                raise
            # A decision that does not have its type's shape differs from whatever is decided now; that says more.
            raw = bytes(stored.data)
            return Event(
                stored.position, stored.time, stored.id, stored.kind, stored.actor, stored.type,
                stored.correlation, stored.causation, Unknown(stored.type, raw), raw,
            )

    def _stop(self, error: HistoryError) -> None:
        """The recorded history cannot be followed: what differed so far says why, if anything did."""
        try:
            self._conclude(complete=False)
        except _Diverged:
            return
        if self._what_if or not self._divergences:
            self._stopped = error.message

    # --- as the engine's witness ----------------------------------------------------------------------------------

    def delivered(self, reading: RecordedReaction) -> None:
        """See Witness."""
        if reading.subscribers:
            self._due = self._react(reading)

    def recorded(self, event: Event) -> None:
        """See Witness."""
        if not self._wanted(event):
            return
        if self._absent and (about := about_whom(event)) in self._absent:
            self._undecided.add(about)
            return
        self._decisions += 1
        self._recorded.append(event)
        due = next(self._due, None)
        if due is not None:
            self._expected.append(due)
        if due is None or not _equal(due, event):
            self._differs = True

    def ended(self, reading: RecordedReaction) -> None:
        """See Witness."""
        if reading.subscribers or self._recorded:
            self._conclude(complete=True)

    def _react(self, reading: RecordedReaction) -> Iterator[Event]:
        """The decisions of today's code on the event, one at a time: each actor reacts when the recorded decisions of
        those before it are in the engine's books, as it did live."""
        engine_decisions = 0
        for actor, state, failure in reading.taken:
            if self._only not in (None, ENGINE, actor.name):
                continue
            for decision in self.engine.react(actor, state, reading.event, failure, engine_decisions).decisions:
                engine_decisions += decision.actor == ENGINE
                if self._wanted(decision):
                    yield decision

    def _wanted(self, event: Event) -> bool:
        return self._only is None or self._only in (event.actor, about_whom(event))

    # --- comparing a reaction -------------------------------------------------------------------------------------

    def _conclude(self, complete: bool) -> None:
        """Compare what was decided now with what was recorded. An incomplete reaction, at the log's end, lacks only
        what stands before something recorded."""
        if complete:
            self._expected.extend(self._due)
        if self._differs or len(self._expected) != len(self._recorded):
            self._compare(self._expected, self._recorded)
        self._due = iter(())
        self._expected.clear()
        self._recorded.clear()
        self._differs = False

    def _compare(self, expected: Sequence[Event], recorded: Sequence[Event]) -> None:
        by_id: dict[str, Event] = {}
        for event in recorded:
            if by_id.setdefault(event.id, event) is not event:  # it stands there twice
                self._note("extra", event.position, None, event)
        for event in expected:
            found = by_id.pop(event.id, None)
            if found is None:
                self._note("missing", event.position, event, None)
            elif not _equal(event, found):
                self._note("changed", found.position, event, found)
        for found in by_id.values():
            self._note("extra", found.position, None, found)

    def _note(self, kind: DivergenceKind, position: int, expected: Event | None, recorded: Event | None) -> None:
        listed = self._otherwise.decision(self._version, expected, recorded)
        if listed:
            self._listed.update(listed)
            return
        shown = recorded or expected
        about = about_whom(shown) if shown is not None else ""
        found = Divergence(kind, position, about, expected, recorded)
        self._counts[found.shown.actor, found.shown.type, kind] += 1
        if len(self._divergences) < LISTED_MAX:
            self._divergences.append(found)
        if not self._what_if:
            raise _Diverged


def _equal(expected: Event, recorded: Event) -> bool:
    return (
        expected.id == recorded.id and expected.raw == recorded.raw and expected.type == recorded.type
        and expected.actor == recorded.actor and expected.correlation == recorded.correlation
    )
