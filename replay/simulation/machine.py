"""The daemon's part in the simulation: opens the log, recovers, drives the engine, starts effects, ends or is ended.

The same rules as ``actors.runtime`` and the daemon, without threads and without waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from actors.actor import AnyActor
from actors.engine import Engine, Output
from actors.intake import Intake
from actors.integrity import EngineBroken
from actors.snapshot import export_engine, restore_engine, usable
from contracts.content import BlobContent, Content, whole
from contracts.daemon import DaemonStarted, DaemonStopped
from contracts.effect import EffectCancelled, EffectInterrupted, EffectTimedOut
from contracts.kernel import KernelObserved, KernelReadRequested
from contracts.orchestra_events import RunRequested
from contracts.payload import OutwardRequest, effect_of
from events.commit import Committer
from events.errors import OutcomeUnknown
from events.event import Event, Tail
from events.log import opening_events
from events.reader import runs
from events.redact import Redactor
from events.segment_store import SegmentStorage
from events.sequencer import Sequencer
from replay.simulation.borders import Borders, Interrupted, end_broken
from replay.simulation.disk import Crashed, SimBlobs
from replay.simulation.invariants import DOCUMENTS, Documents, Watch
from replay.simulation.running import Running, switched
from replay.simulation.snapshots import CODE, spoiled, taken
from replay.simulation.world import World, require

FOLDER: Final = "/state/log"
BLOBS: Final = "/state/blobs"
SNAPSHOT: Final = "/state/snapshot"
FIRST_SECONDS: Final = 35.0
"""A start that has seen no reading for so long looks for itself, as the daemon does."""

Perform = Callable[[Running], None]


class Machine:
    """One process after another over one disk. ``perform`` is the outside world's side of an effect, ``observe`` looks
    at the surfaces as the watcher does."""

    def __init__(
        self, world: World, actors: Callable[[], Sequence[AnyActor]], documents: Callable[[], Documents] | None,
        secrets: Sequence[str],
    ) -> None:
        self._world = world
        self._actors = actors
        self._make_documents = documents
        self._log_id = f"{world.random.getrandbits(128):032x}"
        self._segment_bytes = world.random.choice((3_000, 3_000, 20_000, 1_000_000))
        self.blobs = SimBlobs(world.disk, BLOBS)
        self._intake = Intake(Redactor(secrets), self.blobs)
        self.watch = Watch(
            world.disk, FOLDER, actors, documents, self.blobs, [secret.encode() for secret in secrets]
        )
        self.perform: Perform = lambda _: None
        self.observe: Callable[[], None] = lambda: None
        self.tells: Callable[[str, msgspec.Struct], None] = lambda *_: None  # each fact's id, ahead of the engine
        self.boot = 0
        self.up = False
        self.surface = ""
        self.always_daemon = False
        """Whether what is started next is a daemon, unless a fault makes it a command."""
        self._power = self._again = False
        self._snapshots: list[bytes] = []
        self.borders = Borders()

    def provide(self, contents: Sequence[bytes]) -> None:
        """Keep these as blobs: what performers will say that was left."""
        for content in contents:
            self._unwatched(self.blobs.put, content)

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
            world.ended(error)
            self._die()
        except (Interrupted, EngineBroken) as error:
            end_broken(self, error)

    def _die(self) -> None:
        world, disk = self._world, self._world.disk
        power = self._power or (world.faults.active and world.random.random() < 0.2)
        self.up = self._power = False
        disk.crash(power)
        disk.full = world.random.random() >= 0.8 and disk.full
        # What a process left unsynced is lost only if the next one takes it for durable, and the power goes then.
        self._again = (disk.between_names or world.faults.strike("crash: power, soon after a start")) and not power
        disk.between_names = False
        world.later(world.between(0.01, 2.0), "start", self.start)

    def _lose_power(self) -> None:
        self._power = True
        raise Crashed

    def kill(self) -> None:
        """The process ends, now."""
        if self.up:
            self.guard(self._end_now)

    def _end_now(self) -> None:
        raise Crashed

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
        read = [self.watch.typed(stored) for run in runs(self.storage, from_snapshot + 1) for stored in run]
        for event in read if from_snapshot else ():
            self.engine.fold(event)
        self.engine = self.engine if from_snapshot else self.watch.folded()
        if self.documents is not None:
            self.documents.fold(self.watch.history[from_snapshot:], self.watch.sums[from_snapshot:])
            self._write_changed()
            self.borders.started(self.documents)
        self._committer, self.submitted = Committer(self.storage), self.storage.tail().position
        self._commit_due = self._write_due = self._stopping = False
        self._running, self._count, self._waiting = dict[int, Running](), dict[type, int](), dict[type, deque[Event]]()
        self._unread, self._paused = True, self.engine.effects.paused
        self._held: list[Event] = []
        if self.storage.recovered is not None:
            world.faults.note("log: tail cut")
        first = opening_events(
            self.storage, self._log_id, self.storage.recovered, self.engine.sequencer, world.now(), f"boot-{self.boot}"
        )
        before = self.engine.effects.unfinished()
        now = world.now()
        completed = self.engine.complete(now)
        if from_snapshot and not first and not completed.events:
            self._unwatched(self.watch.restored, (export_engine(self.engine), self.engine.states), now)
        self.up = True
        for output in filter(lambda output: output.events, (Output(first, [], []), completed)):
            self._submit(output)
        if self.engine.effects.held:
            world.faults.note("effect: paused over a start")
        self._take_up([event for event in before if self.engine.effects.is_open(event.position)])
        command = world.faults.strike("start: takes no runs up")
        self.surface = "oa.status" if command else world.random.choice(("daemon", "daemon", "orchestra.run"))
        if self.always_daemon and not command:
            self.surface = "daemon"
        started = DaemonStarted(version="sim", python="3", surface=self.surface)
        self.append(started, f"daemon.started:{self.boot}", "daemon")
        self._in_process(FIRST_SECONDS, "first look", lambda: self.observe() if self._unread else None)
        if command:  # it opens the log for something else, and is done soon
            self._in_process(world.between(0.0, 3.0), "command ends", self.stop)
        if self._again:
            self._in_process(world.between(0.0, 0.5), "power", self._lose_power)

    def _unwatched(self, look: Callable[..., Any], *arguments: Any) -> None:
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
        for running in list(self._running.values()):
            running.on_stop()
        for event in list(self.engine.effects.open.values()):
            effect = effect_of(event.data)
            if event.position not in self.engine.effects.held and (effect is None or not effect.repeatable):
                self._conclude(event, EffectInterrupted(request=event.position, reason="stop"))
        self.append(DaemonStopped(reason="SIGTERM"), f"daemon.stopped:{self.boot}", "daemon")
        self.end()

    def end(self) -> None:
        """Write what was handed over, and the ends of what it cancels, which a broken engine takes no more."""
        self._stopping, before = True, self.submitted
        while not self._committer.idle:
            self._commit()
        handed_over = before if self.engine.broken else self.submitted
        require(self.storage.tail().position == handed_over, "a stop wrote something else than was handed over")
        self._write_changed()
        self._save()
        self.storage.close()
        self.watch.settled(self.storage.tail())
        self.up = False
        self._world.later(self._world.between(0.01, 1.0), "start", self.start)

    # --- the snapshot cache --------------------------------------------------------------------------------------

    def _save(self) -> None:
        snapshot = taken(self._log_id, self.storage.tail(), self.engine, self.documents)
        if snapshot is not None:
            self._snapshots.append(snapshot)
            self._world.disk.put(SNAPSHOT, snapshot)

    def _restore(self) -> int:
        """Start from the cache, which may be an old one, a stranger's, or damaged; the position it stands at."""
        world = self._world
        raw = world.disk.get(SNAPSHOT)
        if raw is None:
            return 0
        snapshot = usable(spoiled(world, raw, self._snapshots, self._actors), self._log_id, CODE, self.storage)
        if snapshot is None:
            world.faults.note("snapshot: refused")
            return 0
        states = self.documents.decoded(snapshot.extra) if self.documents is not None else {}
        restore_engine(self.engine, snapshot.engine, snapshot.tail)
        if self.documents is not None:
            self.documents.restore(states)
        world.faults.note("snapshot: used")
        return snapshot.tail.position

    # --- facts in, durable out -----------------------------------------------------------------------------------

    def append(
        self, payload: msgspec.Struct, id: str, actor: str, done: Callable[[int], None] | None = None
    ) -> None:
        """Take a fact; ``done`` is called with its position when it and what follows from it are durable."""
        correlation = payload.run_id if isinstance(payload, RunRequested) else f"c-{id}"
        draft = self._intake.fact(payload, id, actor, correlation)
        self.tells(draft.id, payload)
        output = self.borders.take(self.engine, lambda: self.engine.accept(draft, self._world.now()))
        position = self.engine.sequencer.seen(draft.id) or 0
        self._submit(output or Output([], [], []), lambda: done(position) if done is not None else None)

    def _submit(self, output: Output, done: Callable[[], None] | None = None) -> None:
        self._committer.submit(output.events, (output, done))
        self.submitted = output.events[-1].position if output.events else self.submitted
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
        durable = self._world.others.under(self._committer.commit) if not self._committer.idle else None
        if durable is None:
            return
        self._world.note(durable.tail.sum)
        self.watch.committed(durable.tail)
        at = 0
        for submission in durable.submissions:
            events = submission.events
            sums = durable.sums[at : at + len(events)]
            at += len(events)
            self.watch.durable(events, sums)
            self._show(events, sums)
            self._paused = switched(events, before=self._paused)
            if self._unread and any(isinstance(event.data, KernelObserved) for event in events):
                self._in_process(0.0, "release outward", self._release_outward)
            output, done = submission.token
            if done is not None:
                done()
            self._let_go()
            for event in output.starts:
                self._start_effect(event)
            for cancel in output.cancels if self.engine.broken is None else ():
                self._cancel(cancel.request, cancel.reason)
        if self._committer.idle:
            self._in_process(0.05, "settle", self._settle)
        elif not self._commit_due:
            self._commit_due = True
            self._in_process(0.0, "commit", self._commit)

    def _settle(self) -> None:
        if self._committer.idle:
            self._world.others.under(self._committer.settle)
            self.watch.settled(self.storage.tail())
            if self._world.random.random() < 0.2:
                self._save()

    def _show(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Fold durable events into the documents, and write these soon; many changes at once are one write."""
        if self.documents is not None:
            self.documents.fold(events, sums)
        self.borders.project(self.documents)
        if not self._write_due:
            self._write_due = True
            self._in_process(0.0, "documents", self._write_changed)

    def _write_changed(self) -> None:
        self._write_due = False
        if self.documents is not None:
            self._write_documents(self.watch.rendering.computed(self.documents.take()))
            self.documents.settle()

    def _write_documents(self, documents: dict[str, Content]) -> None:
        for path, rendered in documents.items():
            content = whole(rendered, self.blobs)
            self._world.disk.put(f"{DOCUMENTS}/{path}", content)
            self._world.faults.note("document: written")
            digest = rendered.sha256 if isinstance(rendered, BlobContent) else sha256(content).hexdigest()
            self._world.note(f"{path} {digest}")
        self.watch.written({path: self._world.disk.get(f"{DOCUMENTS}/{path}") for path in documents})

    # --- effects -------------------------------------------------------------------------------------------------

    def _start_effect(self, event: Event) -> None:
        if self._stopping or not self.engine.effects.is_open(event.position):
            return
        cancelled = self.engine.effects.cancelled.get(event.position)
        if cancelled is not None:
            self._conclude(event, EffectCancelled(request=event.position, reason=cancelled))
            return
        paused = self._paused or self.engine.effects.paused
        if isinstance(event.data, OutwardRequest) and (self._unread or paused):
            self._world.faults.note("effect: paused before it started" if paused else "effect: held after a start")
            if event.data.waits or not paused:
                self._held.append(event)
            else:
                self._conclude(event, EffectCancelled(request=event.position, reason="paused"))
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

    def _release_outward(self) -> None:
        self._unread = False
        self._let_go()

    def _let_go(self) -> None:
        if self._held and not self._unread and not self._paused and not self.engine.effects.paused:
            held, self._held = self._held, []
            for event in sorted(held, key=lambda event: event.position):
                self._start_effect(event)

    def answer(self, running: Running, payload: msgspec.Struct, word: str = "outcome") -> None:
        """A performer answers: in time, late, again (``word`` distinguishes its answers), or to a process that is gone.
        What it did outside may outlive that one, and answer the next."""
        if not self.up:
            return
        if running.boot != self.boot:
            outlives = not isinstance(running.event.data, KernelReadRequested)
            if outlives and self._world.faults.strike("effect: answers a later process"):
                self.guard(self._conclude, running.event, payload, f"{word} of process {running.boot}")
            return
        if running.stopped and not running.ended:
            payload = EffectCancelled(request=running.event.position, reason=running.stopped)
        self.guard(self._answered, running, payload, word)

    def _answered(self, running: Running, payload: msgspec.Struct, word: str) -> None:
        self._conclude(running.event, payload, word)
        self._release(running)

    def _release(self, running: Running) -> None:
        if running.ended:
            return
        running.ended = True
        self._running.pop(running.event.position, None)
        cls = type(running.event.data)
        self._count[cls] -= 1
        effect = effect_of(running.event.data)
        assert effect is not None, "only effects run"
        waiting = self._waiting.get(cls)
        while waiting and self._count[cls] < effect.concurrency:
            self._start_effect(waiting.popleft())

    def _expire(self, running: Running, limit: float) -> None:
        if running.ended or not self.engine.effects.is_open(running.event.position):
            return
        self._world.faults.note("effect: past its limit")
        running.on_stop()
        self._conclude(running.event, EffectTimedOut(request=running.event.position, limit_s=limit))
        self._in_process(self._stubborn(), "performer ends", self._release, running)

    def _cancel(self, request: int, reason: str) -> None:
        running = self._running.get(request)
        self._world.faults.note("effect: cancelled")
        if running is not None:
            running.stopped = reason
            running.on_stop()
            self._in_process(self._stubborn(), "give up", self._give_up, running)
        elif (event := self.engine.effects.open.get(request)) is not None:
            self._conclude(event, EffectCancelled(request=request, reason=reason))

    def _give_up(self, running: Running) -> None:
        self._conclude(running.event, EffectCancelled(request=running.event.position, reason=running.stopped))
        self._release(running)

    def _stubborn(self) -> float:
        """How long a performer takes to end when it is told to."""
        return 10.0 if self._world.faults.strike("effect: ignores being stopped") else self._world.between(0.0, 0.01)

    def _conclude(self, event: Event, payload: msgspec.Struct, word: str = "outcome") -> None:
        self.tells((draft := self.borders.draft(self._intake, event, payload, word)).id, draft.data)
        output = self.borders.take(self.engine, lambda: self.engine.finish(event.position, draft, self._world.now()))
        if output is not None:
            self._submit(output)
        else:
            self._world.faults.note("effect: second end dropped")
