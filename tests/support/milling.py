"""A harness in which anything may happen at any moment: what a test draws is done, and the process may end anywhere."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.actors.registry import all_actors
from pmagent.contracts.daemon import DaemonStopped
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.contracts.orchestra_events import (
    PlannerCallRequested,
    PlannerFailed,
    RunCancelRequested,
    TaskAttemptRequested,
    TaskUnstarted,
)
from pmagent.contracts.payload import effect_of
from pmagent.events.event import Event, Tail, time_after
from pmagent.events.sequencer import Sequencer
from pmagent.replay.areas.invariants_runs import RunCheck, check_runs
from pmagent.replay.replayer import replay_log
from tests.support.orchestra import START, Harness, exited, replied
from tests.support.recorded import stored_log

OUTCOMES = (
    "done", "done", "done", "done", "code", "signal", "timed out", "exceeded", "violation", "unstarted", "never starts",
    "failed", "stopped",
)
ANSWERS = ("plan", "plan", "garbage", "circle", "fails", "refuses", "timed out", "stopped")


class Mill(Harness):
    """A harness that is held to what must always hold of runs. ``do`` takes a step that was drawn: what, and a number
    that says of which."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def ask(self, given: Any, **more: Any) -> None:
        """Ask for one more run."""
        self.asked.append(self.request(given, f"00000000-0000-4000-8000-{len(self.asked):012x}", **more))

    def do(self, what: str, number: int) -> None:
        """One step; nothing happens where there is nothing to do it to."""
        match what:
            case "cancel" if self.asked:
                self.tell(RunCancelRequested(run_id=self.asked[number % len(self.asked)]))
            case "BLOCKED" | "DEGRADED" | "NORMAL":
                self.observe(what)
            case "wake":
                self.wake()
            case "wait":
                self.seconds += number % 50
            case "crash":
                self.crash(1 + number % len(self.history))
            case "stop":
                self.stop()
            case _ if what in OUTCOMES or what in ANSWERS:
                self.answer(what, number)

    def answer(self, how: str, number: int) -> None:
        """An open attempt, or call of the planner's, ends so."""
        waiting = self.open(TaskAttemptRequested if how in OUTCOMES and number % 3 else PlannerCallRequested)
        waiting = waiting or self.open(TaskAttemptRequested)
        if not waiting:
            return
        event = waiting[number % len(waiting)]
        cancelled = self.engine.effects.cancelled.get(event.position)
        if cancelled is not None:
            self.end(event, EffectCancelled(request=event.position, reason=cancelled))
        elif isinstance(event.data, TaskAttemptRequested):
            self.end(event, outcome(event, how))
        else:
            self.end(event, answered(event, how))

    # --- ends of processes ----------------------------------------------------------------------------------------

    def stop(self) -> None:
        """An orderly stop; then a new start, of the daemon or of a command."""
        for event in list(self.engine.effects.open.values()):
            effect = effect_of(event.data)
            if effect is not None and not effect.repeatable:
                self.end(event, EffectInterrupted(request=event.position, reason="stop"))
        self.tell(DaemonStopped(reason="SIGTERM"))
        self.again()

    def crash(self, kept: int) -> None:
        """The process ends, and of its log ``kept`` events are durable; the next one completes what was cut short."""
        self.history = self.history[:kept]
        self.engine = Engine(all_actors(), Sequencer(Tail()))
        for event in self.history:
            self.engine.fold(event)
        self.history += self.engine.complete(time_after(START, self.seconds)).events
        self.asked = [event.data.run_id for event in self.history if event.type == "run.requested"]
        for event in list(self.engine.effects.open.values()):
            effect = effect_of(event.data)
            if effect is not None and not effect.repeatable:
                self.end(event, EffectInterrupted(request=event.position, reason="crash"))
        self.again()

    def again(self) -> None:
        """The next process starts: every third is a command that does not take runs up."""
        self.begin("oa.status" if len(self.history) % 3 == 0 else "daemon")

    def begin(self, surface: str) -> None:
        """A process starts, and reads the surfaces."""
        self.start(surface)
        while self.open(KernelReadRequested):
            self.observe("NORMAL")

    # --- coming to rest -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything goes well from now on, until nothing is left to do."""
        self.begin("daemon")
        for _ in range(5_000):
            waiting = self.open(TaskAttemptRequested) + self.open(PlannerCallRequested)
            if waiting:
                self.answer("done" if isinstance(waiting[0].data, TaskAttemptRequested) else "fails", 0)
            elif not self.wake():
                break
        else:
            raise AssertionError("it does not come to an end")

    def check(self) -> None:
        """The laws that always hold."""
        check_runs(self.history)
        still = RunCheck()
        for event in self.history:
            still.take(event)
        still.check_still()

    def check_ended(self) -> None:
        """The laws that hold when everything has come to rest: no run is open, nor any effect."""
        self.check()
        states = self.engine.states
        assert (states["orchestrator"].runs, states["coordinator"].runs, states["worker"].jobs) == ({}, {}, {})
        assert (states["worker"].stopping, self.engine.effects.open) == ({}, {})
        over = [event.data.request for event in self.history if event.type in ("run.ended", "run.refused")]
        asked = [event.position for event in self.history if event.type == "run.requested"]
        assert sorted(over) == asked

    def check_replay(self) -> None:
        """Read back, the history leads to the same states; decided anew, to the same decisions."""
        engine = Engine(all_actors(), Sequencer(Tail()))
        for event in self.history:
            engine.fold(event)
        assert engine.complete("").events == []
        assert engine.states == self.engine.states
        result = replay_log(stored_log(self.history), all_actors())
        assert (result.stopped, result.divergences) == ("", [])


def outcome(event: Event, how: str) -> msgspec.Struct:
    """The end of an attempt that ``how`` says."""
    at = event.position
    match how:
        case "code":
            return exited(event, 3, last_lines=["no"])
        case "signal":
            return exited(event, None)
        case "timed out":
            return exited(event, None, timed_out=True)
        case "exceeded":
            return exited(event, None, exceeded="memory")
        case "violation":
            return exited(event, 0, violations=["left its walls"])
        case "unstarted" | "never starts":
            asked: TaskAttemptRequested = event.data
            return TaskUnstarted(
                request=at, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt, reason="no sandbox",
                mend="pmagent doctor", security=False, again=how == "unstarted",
            )
        case "failed":
            return EffectFailed(request=at, error="OSError", place="toy")
        case "stopped":
            return EffectInterrupted(request=at, reason="stop")
    return exited(event)


def answered(event: Event, how: str) -> msgspec.Struct:
    """The end of a planner's call that ``how`` says."""
    at, call = event.position, event.data
    name = f"p{call.revision}-{call.attempt}"
    match how:
        case "garbage":
            return replied(event, "Sure!")
        case "circle":
            return replied(event, '[{"task_id": "a", "intent": "a", "tools": ["ls"], "depends_on": ["a"]}]')
        case "fails" | "refuses":
            return PlannerFailed(
                request=at, run_id=call.run_id, code="refused" if how == "refuses" else "exited", text="no", mend="",
                again=how == "fails", duration_ms=1,
            )
        case "timed out":
            return EffectTimedOut(request=at, limit_s=660.0)
        case "stopped":
            return EffectInterrupted(request=at, reason="stop")
    tasks = [{"task_id": f"{name}-{n}", "intent": "x", "tools": ["ls"], "depends_on": [f"{name}-{m}" for m in range(n)]}
             for n in range(3)]
    return replied(event, msgspec.json.encode(tasks).decode())
