"""The daemon's part in the simulation: opens the log, recovers, drives the engine, starts effects, ends or is ended.

The same rules as ``actors.runtime`` and the daemon, without threads and without waiting: durable before anything is
acknowledged or started, group commit, limits, one terminal fact for each effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from actors.actor import AnyActor
from actors.engine import Engine, Output
from actors.intake import Intake
from actors.snapshot import FORMAT, Snapshot, encode_snapshot, export_engine, restore_engine, usable
from contracts.daemon import DaemonStarted, DaemonStopped
from contracts.effect import EffectCancelled, EffectInterrupted, EffectTimedOut
from contracts.payload import effect_of, type_of, typed
from events.blobs import BlobStore
from events.commit import Committer
from events.errors import OutcomeUnknown
from events.event import Event, Tail
from events.log import opening_events
from events.reader import runs
from events.redact import Redactor
from events.segment_store import SegmentStorage
from events.sequencer import Sequencer
from replay.simulation.disk import Crashed
from replay.simulation.invariants import Documents, Watch
from replay.simulation.world import World

FOLDER: Final = "/state/log"
BLOBS: Final = "/state/blobs"
SNAPSHOT: Final = "/state/snapshot"
CODE: Final = "simulated"

Perform = Callable[["Running"], None]


class Running:
    """An effect that is being performed, in the machine's life number ``boot``."""

    def __init__(self, event: Event, boot: int) -> None:
        self.event = event
        self.boot = boot
        self.stopped = ""
        self.ended = False


class Machine:
    """One process after another over one disk. ``perform`` is the outside world's side of an effect."""

    def __init__(
        self, world: World, actors: Callable[[], Sequence[AnyActor]], documents: Callable[[], Documents] | None,
        secrets: Sequence[str],
    ) -> None:
        self._world = world
        self._actors = actors
        self._make_documents = documents
        self._log_id = f"{world.random.getrandbits(128):032x}"
        self._segment_bytes = world.random.choice((3_000, 20_000, 1_000_000))
        self._blobs = BlobStore(world.disk, BLOBS)
        self._intake = Intake(Redactor(secrets), self._blobs)
        self.watch = Watch(
            world.disk, FOLDER, actors, documents, self._blobs, [secret.encode() for secret in secrets]
        )
        self.perform: Perform = lambda _: None
        self.boot = 0
        self.up = False
        self._power = False
        self._snapshots: list[bytes] = []

    # --- life and death ------------------------------------------------------------------------------------------

    def guard(self, action: Callable[..., Any], *arguments: Any) -> None:
        """Do something in the process; it may end there."""
        world = self._world
        for fault in ("crash: process", "crash: power"):
            if world.disk.crash_after is None and world.faults.strike(fault):
                world.disk.crash_after = world.random.randrange(12)
                self._power = fault == "crash: power"
        try:
            action(*arguments)
        except (Crashed, OSError, OutcomeUnknown) as error:
            world.note(type(error).__name__)
            self._die()

    def _die(self) -> None:
        world = self._world
        power = self._power or (world.faults.active and world.random.random() < 0.2)
        self.up = False
        self._power = False
        world.disk.crash(power)
        if world.random.random() < 0.8:
            world.disk.full = False
        world.later(world.between(0.01, 2.0), "start", self.start)

    def start(self) -> None:
        """A new process opens the log and goes live."""
        world = self._world
        if world.disk.crash_after is None and world.faults.strike("crash: in recovery"):
            world.disk.crash_after = world.random.randrange(40)
            self._power = world.random.random() < 0.5
        self.guard(self._start)

    def _start(self) -> None:
        world, disk = self._world, self._world.disk
        self.boot += 1
        self.storage = SegmentStorage(disk, FOLDER, self._log_id, self._segment_bytes)
        self._unwatched(self.watch.opened, self.storage)
        self.engine = Engine(self._actors(), Sequencer(Tail()))
        self.documents = self._make_documents() if self._make_documents else None
        from_snapshot = self._restore()
        for run in runs(self.storage, from_snapshot + 1):
            events = [typed(stored, self._blobs) for stored in run]
            for event in events:
                self.engine.fold(event)
        if self.documents is not None:
            self.documents.fold(self.watch.history, self.watch.sums)
        self._committer = Committer(self.storage)
        self._commit_due = False
        self._stopping = False
        self._running: dict[int, Running] = {}
        self._count: dict[type, int] = {}
        self._waiting: dict[type, deque[Event]] = {}
        if self.storage.recovered is not None:
            world.faults.note("log: tail cut")
        first = opening_events(
            self.storage, self._log_id, self.storage.recovered, self.engine.sequencer, world.now(), f"boot-{self.boot}"
        )
        before = list(self.engine.effects.open.values())
        now = world.now()
        completed = self.engine.complete(now)
        if from_snapshot and not first and not completed.events:
            self._unwatched(self.watch.restored, (export_engine(self.engine), self.engine.states), self.storage, now)
        self.up = True
        for output in (Output(first, [], []), completed):
            if output.events:
                self._submit(output)
        self._take_up([event for event in before if self.engine.effects.is_open(event.position)])
        started = DaemonStarted(version="sim", python="3", surface="daemon")
        self.append(started, f"daemon.started:{self.boot}", "daemon")

    def _unwatched(self, look: Callable[..., None], *arguments: Any) -> None:
        """The simulation looks at the disk: that is no operation of the process."""
        self._world.disk.watched = False
        try:
            look(*arguments)
        finally:
            self._world.disk.watched = True

    def _take_up(self, recovered: Sequence[Event]) -> None:
        for event in recovered:
            effect = effect_of(event.data)
            cancelled = event.position in self.engine.effects.cancelled
            if cancelled or (effect is not None and effect.repeatable):
                if not cancelled:
                    self._world.faults.note("effect: performed again")
                self._start_effect(event)
            else:
                self._world.faults.note("effect: cut off")
                self._conclude(event, EffectInterrupted(request=event.position, reason="crash"))

    def stop(self) -> None:
        """An orderly stop: running effects ended, a last word, the log settled and closed; then a new start."""
        self._stopping = True
        for event in list(self.engine.effects.open.values()):
            effect = effect_of(event.data)
            if effect is None or not effect.repeatable:
                self._conclude(event, EffectInterrupted(request=event.position, reason="stop"))
        self.append(DaemonStopped(reason="SIGTERM"), f"daemon.stopped:{self.boot}", "daemon")
        while not self._committer.idle:
            self._commit()
        self._save()
        self.storage.close()
        self.up = False
        self._world.later(self._world.between(0.01, 1.0), "start", self.start)

    # --- the snapshot cache --------------------------------------------------------------------------------------

    def _save(self) -> None:
        tail = self.storage.tail()
        if not self.engine.quiescent or self.engine.sequencer.position != tail.position:
            return
        snapshot = Snapshot(FORMAT, self._log_id, tail, CODE, export_engine(self.engine), {})
        self._snapshots.append(encode_snapshot(snapshot))
        self._world.disk.put(SNAPSHOT, self._snapshots[-1])

    def _restore(self) -> int:
        """Start from the cache, which may be an old one, of another log, or damaged; the position it stands at."""
        world = self._world
        raw = world.disk.get(SNAPSHOT)
        if raw is None:
            return 0
        if world.faults.strike("snapshot: stale"):
            raw = world.random.choice(self._snapshots)
        if world.faults.strike("snapshot: foreign"):
            kept = msgspec.msgpack.decode(raw[32:], type=Snapshot)
            strange = Tail(kept.tail.position, kept.tail.batch, kept.tail.time, f"{world.random.getrandbits(256):064x}")
            raw = encode_snapshot(msgspec.structs.replace(kept, tail=strange))
        if world.faults.strike("snapshot: damaged"):
            at = world.random.randrange(len(raw))
            raw = raw[:at] + bytes([raw[at] ^ (1 << world.random.randrange(8))]) + raw[at + 1 :]
        snapshot = usable(raw, self._log_id, CODE, self.storage)
        if snapshot is None:
            return 0
        restore_engine(self.engine, snapshot.engine, snapshot.tail)
        world.faults.note("snapshot: used")
        return snapshot.tail.position

    # --- facts in, durable out -----------------------------------------------------------------------------------

    def append(
        self, payload: msgspec.Struct, id: str, actor: str, done: Callable[[int], None] | None = None
    ) -> None:
        """Take a fact; ``done`` is called with its position when it and what follows from it are durable."""
        draft = self._intake.fact(payload, id, actor, f"c-{id}")
        output = self.engine.accept(draft, self._world.now())
        position = self.engine.sequencer.seen(draft.id) or 0
        self._submit(output or Output([], [], []), lambda: done(position) if done is not None else None)

    def _submit(self, output: Output, done: Callable[[], None] | None = None) -> None:
        self._committer.submit(output.events, (output, done))
        self.watch.bounded(len(self.engine.effects.open), *map(len, self._waiting.values()))
        if not self._commit_due:
            self._commit_due = True
            self._in_process(self._world.between(0.0, 0.004), "commit", self._commit)

    def _in_process(self, seconds: float, label: str, action: Callable[..., None], *arguments: Any) -> None:
        """Do something later, if this process still lives then."""
        boot = self.boot

        def run() -> None:
            if self.up and self.boot == boot:
                self.guard(action, *arguments)

        self._world.later(seconds, label, run)

    def _commit(self) -> None:
        self._commit_due = False
        durable = self._committer.commit()
        if durable is None:
            return
        self._world.note(durable.tail.sum)
        at = 0
        for submission in durable.submissions:
            events = submission.events
            sums = durable.sums[at : at + len(events)]
            at += len(events)
            self.watch.durable(events, sums)
            if self.documents is not None:
                self.documents.fold(events, sums)
            output, done = submission.token
            if done is not None:
                done()
            for event in output.starts:
                self._start_effect(event)
            for cancel in output.cancels:
                self._cancel(cancel.request, cancel.reason)
        if self._committer.idle:
            self._in_process(0.05, "settle", self._settle)
        elif not self._commit_due:
            self._commit_due = True
            self._in_process(0.0, "commit", self._commit)

    def _settle(self) -> None:
        if self._committer.idle:
            self._committer.settle()
            if self._world.random.random() < 0.2:
                self._save()

    # --- effects -------------------------------------------------------------------------------------------------

    def _start_effect(self, event: Event) -> None:
        if self._stopping or not self.engine.effects.is_open(event.position):
            return
        cancelled = self.engine.effects.cancelled.get(event.position)
        if cancelled is not None:
            self._conclude(event, EffectCancelled(request=event.position, reason=cancelled))
            return
        effect = effect_of(event.data)
        assert effect is not None, "only effects start"
        cls = type(event.data)
        if self._count.get(cls, 0) >= effect.concurrency:
            self._waiting.setdefault(cls, deque()).append(event)
            return
        self._count[cls] = self._count.get(cls, 0) + 1
        running = self._running[event.position] = Running(event, self.boot)
        self.watch.perform(event)
        if effect.limit_s is not None:
            self._in_process(effect.limit_s, "limit", self._expire, running, effect.limit_s)
        self.perform(running)

    def answer(self, running: Running, payload: msgspec.Struct) -> None:
        """A performer answers: in time, late, again, or to a process that is gone."""
        if not self.up or running.boot != self.boot:
            return
        if running.stopped and not running.ended:
            payload = EffectCancelled(request=running.event.position, reason=running.stopped)
        self.guard(self._answered, running, payload)

    def _answered(self, running: Running, payload: msgspec.Struct) -> None:
        self._conclude(running.event, payload)
        self._release(running)

    def _release(self, running: Running) -> None:
        if running.ended:
            return
        running.ended = True
        self._running.pop(running.event.position, None)
        cls = type(running.event.data)
        self._count[cls] -= 1
        waiting = self._waiting.get(cls)
        if waiting:
            self._start_effect(waiting.popleft())

    def _expire(self, running: Running, limit: float) -> None:
        if running.ended or not self.engine.effects.is_open(running.event.position):
            return
        self._world.faults.note("effect: past its limit")
        self._conclude(running.event, EffectTimedOut(request=running.event.position, limit_s=limit))
        self._in_process(self._stubborn(), "performer ends", self._release, running)

    def _cancel(self, request: int, reason: str) -> None:
        running = self._running.get(request)
        self._world.faults.note("effect: cancelled")
        if running is not None:
            running.stopped = reason
            self._in_process(self._stubborn(), "give up", self._give_up, running)
        elif (event := self.engine.effects.open.get(request)) is not None:
            self._conclude(event, EffectCancelled(request=request, reason=reason))

    def _give_up(self, running: Running) -> None:
        self._conclude(running.event, EffectCancelled(request=running.event.position, reason=running.stopped))
        self._release(running)

    def _stubborn(self) -> float:
        """How long a performer takes to end when it is told to."""
        return 10.0 if self._world.faults.strike("effect: ignores being stopped") else self._world.between(0.0, 0.01)

    def _conclude(self, event: Event, payload: msgspec.Struct) -> None:
        area = type_of(payload).split(".", 1)[0]
        draft = self._intake.fact(payload, f"{event.position}.outcome", area, event.correlation, event.position)
        output = self.engine.finish(event.position, draft, self._world.now())
        if output is not None:
            self._submit(output)
