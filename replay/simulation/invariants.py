"""Laws that always hold, computed from the events themselves and not by the code that is tested (docs/design.md §9)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

from msgspec import UnsetType

from pmagent.actors.areas import AREAS
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.area import load
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.integrity import ENGINE
from pmagent.actors.core.snapshot import EngineState, export_engine
from pmagent.actors.known import blob_check
from pmagent.contracts.content import Content, whole
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectRefused, RequestRefused
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.model import ModelAsked
from pmagent.contracts.oa import OaPermitGranted, OaPermitReleased, OaPermitRevoked
from pmagent.contracts.orchestra_events import RunEnded
from pmagent.contracts.payload import (
    BlobSource,
    effect_of,
    in_blob,
    is_request,
    typed,
)
from pmagent.contracts.pla_events import PlaContractBroken
from pmagent.events.event import Event, Tail
from pmagent.events.head import NAME as HEAD
from pmagent.events.head import decode_head
from pmagent.events.line import ChainChecker, decode_chunk
from pmagent.events.reader import RUN_BYTES
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import BLOB_PREFIX, StorageReader
from pmagent.replay.areas.invariants_pla import ANSWERS
from pmagent.replay.areas.invariants_session_logs import check_session_logs
from pmagent.replay.simulation.altered import Alteration, AlteredReplay
from pmagent.replay.simulation.answers import answered_request, ends_of, requests_effect, verdicts
from pmagent.replay.simulation.disk import SimDisk
from pmagent.replay.simulation.invariants_pauses import check_pauses
from pmagent.replay.simulation.invariants_starts import Starts
from pmagent.replay.simulation.rendering import Part, Rendering
from pmagent.replay.simulation.world import Violation, require

DOCUMENTS: Final = "/workspace"
"""Where the documents lie."""
QUEUE_MAX: Final = 2000
"""In so small a world no queue comes near this."""


class Documents(Protocol):
    """The projections, as far as the simulation needs them (``pmagent.projections.core.documents``)."""

    def fold(self, events: Sequence[Event], sums: Sequence[str]) -> bool:
        """Take durable events."""

    @property
    def owing(self) -> bool:
        """Whether documents that no snapshot would know of may not be on disk yet."""

    @property
    def halted(self) -> Mapping[str, object]:
        """The projections whose code raised, by name."""

    @property
    def names(self) -> Sequence[str]:
        """Those of all projections."""

    def follow(self, other: Any) -> None:
        """Know what another one does, of which nothing was taken."""
        ...

    def halt(self, name: str, error: Exception) -> None:
        """Halt one."""

    def render(self) -> dict[str, Content]:
        """All documents but those of what is long over."""

    def take(self) -> Mapping[str, Part]:
        """Those that may have changed since the last call."""

    def take_changed(self) -> dict[str, Content]:
        """``take``, computed."""

    def settle(self) -> None:
        """The documents taken last are on disk."""

    def export(self) -> dict[str, bytes]:
        """The folds, for the snapshot cache."""

    def decoded(self, exported: dict[str, bytes]) -> dict[str, Any]:
        """Folds from the cache."""

    def restore(self, states: dict[str, Any]) -> None:
        """Take what ``decoded`` gave."""


class Watch:
    """Follows what became durable, and holds everybody to it."""

    def __init__(
        self, disk: SimDisk, folder: str, actors: Callable[[], Sequence[AnyActor]],
        documents: Callable[[], Documents] | None, blobs: BlobSource, secrets: Sequence[bytes],
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._actors = actors
        self._documents = documents
        self._blobs = blobs
        self._secrets = secrets
        self.history: list[Event] = []
        """The durable events, by position - 1."""
        self.sums: list[str] = []
        self.verdicts: dict[int, list[str]] = {}
        """Of the whole history, once it is checked: position of an outward request -> what is to be said against it."""
        self.acknowledged: dict[str, int] = {}
        """Facts whose sender was told that they are durable: id -> position."""
        self.fatal: dict[str, frozenset[str]] = {}
        """Id of a fact -> whose code fails on it."""
        self.noticed: Callable[[Event], None] = lambda _: None
        """Called with each event when it has become durable."""
        self._durable_documents = documents() if documents else None
        self.looks = True
        """Off in a second run, which has to be the same as the first in every byte: laws of the same are the same."""
        self._shown: dict[str, Content] = {}
        self.rendering = Rendering()
        self._folded = 0
        self.starts = Starts()
        self._lines = b""
        """The log as it was read at the last opening: ``_read`` lines, each checked and decoded then."""
        self._read = 0
        self._checker = ChainChecker(Tail())
        """Stands behind them."""
        self._in_blobs: list[int] = []
        """Indexes of the events among them whose payload lies in a blob."""
        self._whole = Engine(actors(), Sequencer(Tail()))
        """Folds the log from its first event on, and never starts from a snapshot."""
        self._whole_documents = documents() if documents else None
        """The same for the documents."""
        self._documents_folded = 0

    def keep_out(self, secret: bytes) -> None:
        """This secret is not known to the redactor, and must not be on the disk either."""
        self._secrets = [*self._secrets, secret]

    # --- as it happens -----------------------------------------------------------------------------------------------

    def opened(self, storage: StorageReader) -> None:
        """A log was opened: everything that was durable is still there, byte for byte. Lines that follow each other and
        end with the sum of the newest durable event are the events that became durable; what they have in blobs is read
        again, and what stands behind them is read and decoded."""
        before, end = len(self.history), storage.tail().position
        lines, new = self._disk.log(self._folder), b""
        if not lines.startswith(self._lines):
            self._read, self._in_blobs, self._checker = 0, [], ChainChecker(Tail())
        if self._read:
            storage.read(self._read, 1)  # a reader begins behind the line before
        position = self._read + 1
        while chunk := storage.read(position, RUN_BYTES):
            cut = chunk.find(b'\n{"position":%d,' % (before + 1)) + 1 or len(chunk) if position <= before else 0
            self._checker.check(chunk[:cut])
            new += chunk[cut:]
            position += chunk.count(b"\n")
        left = self._checker.tail
        same = left.position == before and (not before or left.sum == self.sums[-1])
        require(same, f"of {before} durable events, {left.position} are left or some differ")
        fault = self._checker.check(new)
        require(fault is None, f"a line that was read at an opening is bad: {fault}")
        for stored in decode_chunk(new):
            self.history.append(typed(stored, self._blobs))
            self.sums.append(stored.sum)
        require(len(self.history) == end == lines.count(b"\n"), "the log holds what its tail says")
        self._in_blobs += [at for at in range(self._read, end) if self.history[at].raw.startswith(BLOB_PREFIX)]
        self._read_blobs(0, before)
        self._lines, self._read = lines, end
        for event in self.history[before:]:
            self.starts.take(event)
        self.starts.restart()
        self.committed(storage.tail())

    def read_back(self, storage: StorageReader, position: int) -> list[Event]:
        """The events from ``position`` on, read as a process reads them right after it opened the log. Lines that have
        the bytes which they had then are the events that were decoded then; the blobs that they lie in are read, and
        checked, all the same."""
        found: list[Event] = []
        if position > 1:
            storage.read(position - 1, 1)  # a reader begins behind the line before
        at = self._lines.rfind(b'\n{"position":%d,' % position) + 1  # mostly it is not far from the end
        while chunk := storage.read(position, RUN_BYTES):
            require(self._lines.startswith(chunk, at), f"a start reads other lines at {position} than the opening did")
            first, position = position - 1, position + chunk.count(b"\n")
            self._read_blobs(first, position - 1)
            found += self.history[first : position - 1]
            at += len(chunk)
        return found

    def _read_blobs(self, first: int, end: int) -> None:
        """Read the blobs in which payloads lie, of the events with these indexes in the history."""
        for at in self._in_blobs[bisect_left(self._in_blobs, first) :]:
            if at >= end:
                break
            self._blobs.get(in_blob(self.history[at].raw)[0])

    def durable(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Events became durable."""
        for event, sum_ in zip(events, sums, strict=True):
            if event.position != len(self.history) + 1:
                raise Violation(f"position {event.position} follows {len(self.history)}")
            self.history.append(event)
            self.sums.append(sum_)
            self.starts.take(event)
            self.noticed(event)

    def committed(self, tail: Tail) -> None:
        """A batch was written: HEAD says so to whoever reads (synced or not)."""
        if self.looks:
            self._head(self._disk.get(f"{self._folder}/{HEAD}"), tail, "after a batch")

    def settled(self, tail: Tail) -> None:
        """The log is idle, open or closed: HEAD is durable."""
        if self.looks:
            self._head(self._disk.get_durable(f"{self._folder}/{HEAD}"), tail, "on the disk")

    def _head(self, raw: bytes | None, tail: Tail, where: str) -> None:
        newest = decode_head(raw).newest if raw is not None else None
        noted = newest.tail() if newest is not None else None
        require(noted == tail, f"HEAD {where} names position {noted.position if noted else None}, not {tail.position}")

    def written(self, documents: Mapping[str, tuple[Content, bytes]]) -> None:
        """Documents were written: they show what is durable, all of it and nothing else. ``documents``: what was
        computed for each path, and all its bytes."""
        if self._durable_documents is None:
            return
        self._durable_documents.fold(self.history[self._folded :], self.sums[self._folded :])
        self._folded = len(self.history)
        self._shown |= self.rendering.computed(self._durable_documents.take())
        self._durable_documents.settle()
        for path, (computed, content) in documents.items():
            due = self._shown.get(path)
            if due is not None and due != computed:
                content = whole(due, self._blobs)  # noqa: PLW2901
            known = due is not None and self._disk.get(f"{DOCUMENTS}/{path}") == content
            require(known, f"the document {path} shows something else than what is durable")

    def acknowledge(self, id: str, position: int) -> None:
        """Somebody was told that the fact ``id`` is durable."""
        require(position <= len(self.history), f"{id} was acknowledged before it was durable")
        require(self.history[position - 1].id == id, f"{id} was acknowledged as {self.history[position - 1].id}")
        self.acknowledged[id] = position

    def perform(self, event: Event) -> None:
        """A performer starts."""
        at = event.position
        require(at <= len(self.history) and self.history[at - 1].id == event.id, f"effect {at} started, not durable")
        self.starts.perform(event)

    def read(self, position: int) -> Event:
        """A performer reads what led to its request."""
        require(0 < position <= len(self.history), f"event {position} is read before it is durable")
        return self.history[position - 1]

    def bounded(self, *sizes: int) -> None:
        """Queues are short."""
        if max(sizes, default=0) > QUEUE_MAX:
            raise Violation(f"a queue holds {max(sizes)} entries")

    # --- at a restart ------------------------------------------------------------------------------------------------

    def restored(self, state: tuple[EngineState, dict[str, Any]], now: str) -> None:
        """An engine that started from a snapshot, right after the log was opened, knows what one knows that has folded
        the whole log."""
        other = self.folded()
        other.complete(now)
        require((export_engine(other), other.states) == state, "a start from a snapshot differs from one without")

    def folded(self) -> Engine:
        """An engine of new actors that has folded the log, right after it was opened. Each event is folded once: that a
        fold of all of them in one go, from the disk, comes to the same is looked at in the end (``check_log``)."""
        for event in self.history[self._whole.sequencer.position :]:
            self._whole.fold(event)
        engine = self._whole.copy(self._actors())
        engine.exported = self._whole.exported  # a state that is the same at the next start is not encoded again
        return engine

    def documents(self, documents: Documents) -> None:
        """Let new documents have folded the log, right after it was opened; each event is folded once, too
        (``check_documents``)."""
        whole, start = self._whole_documents, self._documents_folded
        assert whole is not None, "there are documents to follow"
        whole.fold(self.history[start:], self.sums[start:])
        self._documents_folded = len(self.history)
        documents.follow(whole)

    # --- at the end --------------------------------------------------------------------------------------------------

    def check_log(self, live: Engine, alteration: Alteration) -> None:
        """The log as it lies on the disk, after everything came to rest: valid, complete, and reproduced by a replay,
        which comes to know what the ``live`` engine knows, and which finds an ``alteration``."""
        log = SegmentLog(self._folder, disk=self._disk)
        checked = log.verify(decode=True, blobs=blob_check(log.blobs()))
        require(checked.ok, f"log verify: {checked.finding}")
        require(checked.events >= len(self.history), f"{checked.events} of {len(self.history)} events are left")
        replayer = AlteredReplay(log.reader(), self._actors(), self._blobs, alteration)
        replayed = replayer.run()
        first = "\n".join(replayed.divergences[0].lines()) if replayed.divergences else replayed.stopped
        require(replayed.equal, f"replay differs: {first}")
        same = (export_engine(replayer.engine), replayer.engine.states) == (export_engine(live), live.states)
        require(same, "a replay comes to another state than the engine")
        replayer.check_found()
        self.check_order()
        self.check_actors()
        self.check_gate()
        self.check_grants()
        check_pauses(self.history)
        for law in _LAWS:
            law(self.history)
        for path, content in self._disk.files().items():
            for secret in self._secrets:
                require(secret not in content, f"a secret stands in {path}")

    def check_documents(self, live: Documents | None) -> None:
        """Documents folded live equal those rebuilt from the log; and so do all on the disk, also of what is over. All
        are computed afresh."""
        if live is None or self._documents is None:
            return
        rebuilt = self._documents()
        rebuilt.fold(self.history, self.sums)
        require(live.render() == rebuilt.render(), "documents differ from rebuilt ones")
        shown = {f"{DOCUMENTS}/{path}": content for path, content in rebuilt.take_changed().items()}
        files = {path: raw for path, raw in self._disk.files().items() if path.startswith(f"{DOCUMENTS}/")}
        require(files.keys() == shown.keys(), f"other documents on the disk: {sorted(files.keys() ^ shown.keys())[:5]}")
        for path, content in files.items():
            require(content == whole(shown[path], self._blobs), f"the document {path} is not what the log says")
        check_session_logs(files, DOCUMENTS, self.history, self.sums)

    def check_order(self) -> None:
        """Each id once; decisions in the order of their causes; times never go back; what was acknowledged is there."""
        history = self.history
        require(len({event.id for event in history}) == len(history), "an id stands twice")
        requests = {event.position: event.data for event in history if effect_of(event.data) is not None}
        for event in history:
            effect = effect_of(requests[event.causation]) if event.causation in requests else None
            if event.kind == "fact" and effect is not None:
                declared = event.type in effect.outcomes or event.type in _ENDS_OF_ANY
                require(declared, f"effect {event.causation} ended with a {event.type}")
        require(all(a.time <= b.time for a, b in pairwise(history)), "time goes back")
        for id, position in self.acknowledged.items():
            require(history[position - 1].id == id, f"{id} was acknowledged and is not at {position}")
        ends = ends_of(history)
        for request in history:
            if requests_effect(request):
                require(ends[request.position] <= 1, f"effect {request.position} has {ends[request.position]} ends")

    def check_actors(self) -> None:
        """Only the fragile actor halts, and on what is fatal to them others; once at a time, and a halted one decides
        nothing."""
        halted: set[str] = set()
        for event in self.history:
            if isinstance(event.data, ActorHalted) and event.actor == ENGINE:
                name = event.data.name
                fated = name in self.fatal.get(self.history[event.data.input - 1].id, ())
                require(name == "fragile" or fated, f"{name} halted: {event.data.error} in {event.data.place}")
                require(name not in halted, f"{name} halted twice")
                halted.add(name)
            elif isinstance(event.data, ActorResumed):
                halted.discard(event.data.name)
            elif event.actor in halted and event.kind != "fact":
                raise Violation(f"{event.actor} decides though halted")

    def check_gate(self) -> None:
        """The gate refused exactly the requests that it had to refuse."""
        refused = {e.data.request for e in self.history if isinstance(e.data, EffectRefused)}
        self.verdicts = verdicts(self.history)
        for position, objections in self.verdicts.items():
            if objections and position not in refused:
                raise Violation(f"effect {position} was let through: {', '.join(objections)}")
            require(bool(objections) or position not in refused, f"effect {position} was refused for nothing")

    def check_grants(self) -> None:
        """No permit is granted on what was read before the last start, and a released one is worth nothing."""
        seen, revoked = False, set[int | UnsetType]()
        for event in self.history:
            if isinstance(event.data, (DaemonStarted, KernelObserved)):
                seen = isinstance(event.data, KernelObserved)
            elif isinstance(event.data, OaPermitGranted):
                require(seen, f"permit {event.position} was granted on what was read before the start")
            elif isinstance(event.data, OaPermitRevoked | RunEnded):
                revoked.add(event.data.permit)
            elif isinstance(event.data, OaPermitReleased):
                require(event.data.permit in revoked, f"permit {event.data.permit} was released and still counts")

    def check_ended(self) -> None:
        """After everything came to rest: each effect has its end, each request its one answer."""
        ends, answers = ends_of(self.history), Counter(map(answered_request, self.history))
        refused = Counter((e.data.request, e.data.name) for e in self.history if isinstance(e.data, RequestRefused))
        for (at, name), count in refused.items():
            require(count == 1, f"request {at} was refused {count} times because of {name}")
            if ANSWERS.get(type(self.history[at - 1].data), name) != name:
                answers[at] -= 1  # beside the answer of whoever gives it
        for event in self.history:
            at = event.position
            if requests_effect(event):
                require(ends[at] == 1, f"effect {at} ({event.type}) has no end")
            if is_request(event.data) and not isinstance(event.data, ModelAsked | PlaContractBroken):
                require(answers[at] == 1, f"request {at} ({event.type}) has {answers[at]} answers")


_ENDS_OF_ANY: Final = frozenset(("effect.failed", "effect.timed_out", "effect.interrupted", "effect.cancelled"))

_LAWS: Final = [load(law) for area in AREAS for law in area.laws]
"""Those of the areas, loaded before a world begins: nothing in it may read a file."""
