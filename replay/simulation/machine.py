"""The daemon's part in the simulation: opens the log, recovers, drives engine and scheduler, ends or is ended.

It does the work of ``pmagent.actors.core.runtime`` and the daemon, without threads and without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.integrity import EngineBroken
from pmagent.actors.core.ledger import Cancel
from pmagent.actors.core.scheduler import Action, Conclude, Perform, Scheduler, Stop, Timer
from pmagent.actors.core.snapshot import export_engine, restore_engine, usable
from pmagent.contracts.content import BlobContent, Content, whole
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import EffectCancelled, EffectInterrupted, EffectTimedOut
from pmagent.contracts.guests import GuestFact
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.contracts.payload import effect_of
from pmagent.events.commit import Committer
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Event, Tail
from pmagent.events.log import opening_events
from pmagent.events.redact import Redactor
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.sequencer import Sequencer
from pmagent.replay.simulation.blobs import SimBlobs
from pmagent.replay.simulation.borders import Borders, Interrupted, end_broken
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.disk import Crashed
from pmagent.replay.simulation.invariants import DOCUMENTS, Documents, Watch
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.snapshots import CODE, saved, spoiled
from pmagent.replay.simulation.world import World, require

FOLDER: Final = "/state/log"
BLOBS: Final = "/state/blobs"
SNAPSHOT: Final = "/state/snapshot"
FIRST_SECONDS: Final = 35.0
"""A start that has seen no reading for so long looks for itself, as the daemon does."""

Performer = Callable[[Running], None]


class Machine:
    """One process after another over one disk. ``perform`` is the outside world's side of an effect, ``observe`` looks
    at the surfaces as the watcher does. ``kernel_surfaces`` is what each process is set to."""

    kernel_surfaces: Literal["required", "none"] = "required"

    def __init__(
        self, world: World, actors: Callable[[], Sequence[AnyActor]], documents: Callable[[], Documents] | None,
        secrets: Sequence[str],
    ) -> None:
        self._world = world
        self._actors = actors
        self._make_documents = documents
        stream = world.chance.stream
        self._log_id = f"{stream('log').getrandbits(128):032x}"
        self._segment_bytes = stream("log").choice((3_000, 3_000, 20_000, 1_000_000))
        self._random = stream("process")
        """How processes start and end."""
        self._pace = stream("pace")
        """How long a process takes for what it does."""
        self.blobs = SimBlobs(world.disk, BLOBS)
        self._intake = Intake(Redactor(secrets), self.blobs)
        self.watch = Watch(
            world.disk, FOLDER, actors, documents, self.blobs, [secret.encode() for secret in secrets]
        )
        self.perform: Performer = lambda _: None
        self.observe: Callable[[], None] = lambda: None
        self.tells: Callable[[str, msgspec.Struct], None] = lambda *_: None  # each fact's id, ahead of the engine
        self.boot = 0
        self.up = False
        self.surface = ""
        self.always_daemon = False
        """Whether what is started next is a daemon, unless a fault makes it a command."""
        self._power = self._again = False
        self._snapshots: list[bytes] = []
        self.borders = Borders(world.chance, frozenset())

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
                world.disk.crash_after = self._random.randrange(12)
                self._power = fault == "crash: power"
        try:
            try:
                action(*arguments)
            except (Interrupted, EngineBroken) as error:
                end_broken(self, error)
        except (Crashed, OSError, OutcomeUnknown) as error:
            world.ended(error)
            self._die()

    def _die(self) -> None:
        world, disk = self._world, self._world.disk
        power = self._power or (world.faults.active and self._random.random() < 0.2)
        self.up = self._power = False
        disk.crash(power)
        disk.full = self._random.random() >= 0.8 and disk.full
        # Unsynced writes of a process are lost only if the next one takes them for durable, and the power goes then.
        self._again = (disk.between_names or world.faults.strike("crash: power, soon after a start")) and not power
        disk.between_names = False
        world.later(between(self._random, 0.01, 2.0), "start", self.start)

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
            world.disk.crash_after = self._random.randrange(40)
            self._power = self._random.random() < 0.5
        self.guard(self._start)

    def _start(self) -> None:
        world, disk = self._world, self._world.disk
        self.boot += 1
        self.storage = SegmentStorage(disk, FOLDER, self._log_id, self._segment_bytes)
        self._unwatched(self.watch.opened, self.storage)
        self.engine = Engine(self._actors(), Sequencer(Tail()))
        self.documents = self._make_documents() if self._make_documents else None
        from_snapshot = self._restore()
        read = self.watch.read_back(self.storage, from_snapshot + 1)
        for event in read if from_snapshot else ():
            self.engine.fold(event)
        self.engine = self.engine if from_snapshot else self.watch.folded()
        if self.documents is not None:
            if from_snapshot:
                self.documents.fold(self.watch.history[from_snapshot:], self.watch.sums[from_snapshot:])
            else:
                self.watch.documents(self.documents)
            self._write_changed()
            self.borders.started(self.documents)
        self._committer, self.submitted = Committer(self.storage), self.storage.tail().position
        self._commit_due = self._write_due = self._stopping = False
        self._running, self.scheduler = dict[int, Running](), Scheduler(self.engine.effects)
        if self.storage.recovered is not None:
            world.faults.note("log: tail cut")
        first = opening_events(
            self.storage, self._log_id, self.storage.recovered, self.engine.sequencer, world.now(), f"boot-{self.boot}"
        )
        unfinished = self.engine.effects.unfinished()
        now = world.now()
        completed = self.engine.complete(now)
        if self.watch.looks and from_snapshot and not first and not completed.events:
            self._unwatched(self.watch.restored, (export_engine(self.engine), self.engine.states), now)
        self.up = True
        for output in filter(lambda output: output.events, (Output(first, [], []), completed)):
            self._submit(output)
        if unfinished.held:
            world.faults.note("effect: paused over a start")
        self._carry_out(self.scheduler.recovered(unfinished, unread=True), recovered=True)
        self._note(unfinished.begun, ())
        command = world.faults.strike("start: takes no runs up")
        self.surface = "oa.status" if command else self._random.choice(("daemon", "daemon", "orchestra.run"))
        if self.always_daemon and not command:
            self.surface = "daemon"
        started = DaemonStarted(
            version="sim", python="3", surface=self.surface, kernel_surfaces=self.kernel_surfaces
        )
        self.append(started, f"daemon.started:{self.boot}", "daemon")
        self._in_process(FIRST_SECONDS, "first look", lambda: self.observe() if self.scheduler.unread else None)
        if command:  # it opens the log for something else, and is done soon
            self._in_process(between(self._random, 0.0, 3.0), "command ends", self.stop)
        if self._again:
            self._in_process(between(self._random, 0.0, 0.5), "power", self._lose_power)

    def _unwatched(self, look: Callable[..., Any], *arguments: Any) -> None:
        """The simulation looks at the disk: that is no operation of the process."""
        self._world.disk.watched = False
        try:
            look(*arguments)
        finally:
            self._world.disk.watched = True

    def stop(self) -> None:
        """An orderly stop: running effects ended, a last word, the log settled and closed; then a new start."""
        if not self._stopping:
            self._stopping = True
            self._carry_out(self.scheduler.stop())
            self._go_on_stopping()

    def _go_on_stopping(self) -> None:
        if self._stopping and not self.scheduler.busy and self.up:
            self._carry_out(self.scheduler.stopped())
            self.append(DaemonStopped(reason="SIGTERM"), f"daemon.stopped:{self.boot}", "daemon")
            self.end()

    def end(self) -> None:
        """Write what was handed over, and the ends of what it cancels, which a broken engine takes no more."""
        before = self.submitted
        self._carry_out(self.scheduler.abandon() if self.engine.broken else ())
        self._write_all()
        self._carry_out(self.scheduler.stopped())
        self._write_all()
        handed_over = before if self.engine.broken else self.submitted
        require(self.storage.tail().position == handed_over, "a stop wrote something else than was handed over")
        self._write_changed()
        self._save()
        self.storage.close()
        self.watch.settled(self.storage.tail())
        self.up = False
        self._world.later(between(self._random, 0.01, 1.0), "start", self.start)

    def _write_all(self) -> None:
        while not self._committer.idle:
            self._commit()

    # --- the snapshot cache --------------------------------------------------------------------------------------

    def _save(self) -> None:
        snapshot = saved(self._log_id, self.storage.tail(), self.engine, self.documents)
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
        if isinstance(payload, GuestFact):
            correlation = payload.session
        draft = self._intake.fact(payload, id, actor, correlation)
        self.tells(draft.id, payload)
        output = self.borders.take(self.engine, lambda: self.engine.accept(draft, self._world.now()))
        position = self.engine.sequencer.seen(draft.id) or 0
        self._submit(output or Output([], [], []), lambda: done(position) if done is not None else None)

    def _submit(self, output: Output, done: Callable[[], None] | None = None) -> None:
        self._committer.submit(output.events, (output, done))
        self.submitted = output.events[-1].position if output.events else self.submitted
        self.watch.bounded(len(self.engine.effects.open), len(self.scheduler))
        if not self._commit_due:
            self._commit_due = True
            self._in_process(between(self._pace, 0.0, 0.004), "commit", self._commit)

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
            if self.scheduler.unread and any(isinstance(event.data, KernelObserved) for event in events):
                self._in_process(0.0, "release outward", self._release_outward)
            output, done = submission.token
            if done is not None:
                done()
            self._carry_out(self.scheduler.durable(events, output.starts, output.cancels))
            self._note(output.starts, output.cancels)
        if self._committer.idle:
            self._in_process(0.05, "settle", self._settle)
        elif not self._commit_due:
            self._commit_due = True
            self._in_process(0.0, "commit", self._commit)

    def _settle(self) -> None:
        if self._committer.idle:
            self._world.others.under(self._committer.settle)
            self.watch.settled(self.storage.tail())
            if self._world.chance.uniform("snapshot: saved") < 0.2:
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
        written: dict[str, tuple[Content, bytes]] = {}
        for path, rendered in documents.items():
            content = whole(rendered, self.blobs)
            written[path] = rendered, content
            self._world.disk.put(f"{DOCUMENTS}/{path}", content)
            self._world.faults.note("document: written")
            digest = rendered.sha256 if isinstance(rendered, BlobContent) else sha256(content).hexdigest()
            self._world.note(f"{path} {digest}")
        if written and self.watch.looks:
            self._unwatched(self.watch.written, written)

    # --- effects -------------------------------------------------------------------------------------------------

    def _carry_out(self, actions: Sequence[Action], *, recovered: bool = False) -> None:
        faults = self._world.faults
        for action in actions:
            match action:
                case Perform(event, effect):
                    if recovered:
                        faults.note("effect: performed again")
                    running = self._running[event.position] = Running(event, self.boot)
                    alike = sum(type(other.event.data) is type(event.data) for other in self._running.values())
                    require(alike <= effect.concurrency, f"{alike} effects like {event.position} run at once")
                    self.watch.perform(event)
                    self.perform(running)
                case Conclude(event, outcome):
                    if recovered and isinstance(outcome, EffectInterrupted):
                        faults.note("effect: cut off")
                    if isinstance(outcome, EffectCancelled) and outcome.reason == "paused":
                        faults.note("effect: paused before it started")
                    self._conclude(event, outcome)
                case Stop(request):
                    if request in self._running:  # else it was cut off
                        self._stop(self._running[request])
                case Timer(_, seconds):
                    self._in_process(seconds, "timer", self._elapsed, action)

    def _stop(self, running: Running) -> None:
        world = self._world
        running.stopped = True
        running.on_stop()
        stubborn = world.faults.strike("effect: ignores being stopped")
        seconds = between(self._pace, 5.0, 20.0) if stubborn else between(self._pace, 0.0, 0.01)
        self._in_process(seconds, "performer ends", self._ended, running, None)

    def _note(self, starts: Sequence[Event], cancels: Sequence[Cancel]) -> None:
        """Note which rules of the scheduler came to bear."""
        effects = self.engine.effects
        for event in starts:
            if self.scheduler.state(event.position) == "held" and event.position not in effects.held:
                fault = "effect: paused before it started" if effects.paused else "effect: held after a start"
                self._world.faults.note(fault)
        for _ in cancels:
            self._world.faults.note("effect: cancelled")

    def _release_outward(self) -> None:
        self._carry_out(self.scheduler.released())

    def _elapsed(self, timer: Timer) -> None:
        actions = self.scheduler.elapsed(timer)
        if any(isinstance(action, Conclude) and isinstance(action.outcome, EffectTimedOut) for action in actions):
            self._world.faults.note("effect: past its limit")
        self._carry_out(actions)
        self._go_on_stopping()

    def answer(self, running: Running, payload: msgspec.Struct, word: str = "outcome") -> None:
        """A performer answers: in time, late, again (``word`` distinguishes its answers), or to a process that is gone.
        Its outward work may outlive that process, and answer the next."""
        if not self.up:
            return
        if running.boot != self.boot:
            outlives = not isinstance(running.event.data, KernelReadRequested)
            if outlives and self._world.faults.strike("effect: answers a later process"):
                self.guard(self._conclude, running.event, payload, f"{word} of process {running.boot}")
        elif running.ended:
            self.guard(self._conclude, running.event, payload, word)
        else:
            self.guard(self._ended, running, None if running.stopped else payload)

    def _ended(self, running: Running, outcome: msgspec.Struct | None) -> None:
        """A performer has come back; a large outcome is recorded a little later."""
        if running.ended:
            return
        running.ended = True
        actions = self.scheduler.ended(running.event.position, outcome)
        effect = effect_of(running.event.data)
        if effect is not None and effect.bulky:
            self._in_process(between(self._pace, 0.0, 0.01), "recorded", self._record, running, actions)
        else:
            self._record(running, actions)

    def _record(self, running: Running, actions: Sequence[Action]) -> None:
        self._carry_out(actions)
        del self._running[running.event.position]
        self._carry_out(self.scheduler.recorded(running.event.position))
        self._go_on_stopping()

    def _conclude(self, event: Event, payload: msgspec.Struct, word: str = "outcome") -> None:
        self.tells((draft := self.borders.draft(self._intake, event, payload, word)).id, draft.data)
        output = self.borders.take(self.engine, lambda: self.engine.finish(event.position, draft, self._world.now()))
        if output is not None:
            self._submit(output)
        else:
            self._world.faults.note("effect: second end dropped")
