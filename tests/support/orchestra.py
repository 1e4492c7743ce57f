"""A harness for runs: all real actors over one log, with tools and a planner that answer what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.actors.kernel.surfaces import HANDOFF
from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.plan import read_plan
from pmagent.actors.orchestra.running.form import ends_at
from pmagent.actors.registry import all_actors
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested, SurfaceReading
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import (
    Captured,
    PlannerCallRequested,
    PlannerReplied,
    RunEnded,
    RunRefused,
    RunRequested,
    TaskAttemptRequested,
    TaskExited,
)
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event, Tail, parse_time, time_after
from pmagent.events.sequencer import Sequencer

START = "2026-11-21T12:00:00.000000Z"
RUN = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "workspace"
NOTHING = Captured(sha256=sha256(b"").hexdigest(), size_bytes=0, total_bytes=0, cut=False)

P = TypeVar("P")
Waits = Mapping[str, Sequence[str]]
Tool = Callable[[Event], msgspec.Struct | None]
"""The outcome of an attempt or of a planner's call; None: none yet."""


@cache
def _example() -> KernelObserved:
    return read_surfaces(EXAMPLE)


def kernel(mode: str = "NORMAL") -> KernelObserved:
    """The example's surfaces, with the handoff declaring this mode."""

    def declared(reading: SurfaceReading) -> SurfaceReading:
        said = {**reading.content, "mode": mode}
        return msgspec.structs.replace(reading, content=said) if reading.name == HANDOFF else reading

    surfaces = [declared(reading) for reading in _example().surfaces]
    return msgspec.structs.replace(_example(), surfaces=surfaces)


def config(text: str = "", **limits: Any) -> OrchestraConfig:
    """The specification's configuration, with lines of YAML and these limits (workers, retries, base, total)."""
    read = read_config(f'version: "1.0"\n{text}')
    names = {"workers": ("concurrency", "max_workers"), "retries": ("retries", "max"),
             "base": ("retries", "backoff_base_sec"), "total": ("policies", "max_total_duration_sec")}
    for name, value in limits.items():
        section, key = names[name]
        changed = msgspec.structs.replace(getattr(read, section), **{key: value})
        read = msgspec.structs.replace(read, **{section: changed})
    return read


def plan_in(text: str | bytes, where: str = "the plan") -> PlanText:
    """The plan in a text that a person wrote, without the options of its tasks."""
    return read_plan(text, where)[0]


def plan(waits: Waits, **more: Any) -> PlanText:
    """A plan of tasks that wait for each other so; ``more``: task -> further fields."""
    tasks = [
        {"task_id": name, "intent": f"do {name}", "tools": ["echo"], "depends_on": list(needed), **more.get(name, {})}
        for name, needed in waits.items()
    ]
    return msgspec.convert({"tasks": tasks}, PlanText)


def exited(event: Event, code: int | None = 0, **more: Any) -> TaskExited:
    """The end of the attempt that ``event`` requests."""
    asked: TaskAttemptRequested = event.data
    fields: dict[str, Any] = {
        "exit_code": code, "signal": None if code is not None else 9, "timed_out": False, "exceeded": "",
        "duration_ms": 250, "stdout": NOTHING, "stderr": NOTHING, "last_lines": [], "artifacts": [],
    }
    return TaskExited(
        request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt, **(fields | more)
    )


def replied(event: Event, text: str) -> PlannerReplied:
    """The planner's answer to the call that ``event`` requests."""
    return PlannerReplied(
        request=event.position, run_id=event.data.run_id, text=text, model="toy", duration_ms=7, tokens=11
    )


class Harness:
    """An engine with every actor, started and with a kernel in order. ``tool`` and ``planner`` make outcomes."""

    def __init__(self, mode: str = "NORMAL", surface: str = "daemon") -> None:
        self.engine = Engine(all_actors(), Sequencer(Tail()))
        self.history: list[Event] = []
        self.seconds = 0.0
        self.facts = 0
        self.tool: Tool = exited
        self.planner: Tool = lambda _: None
        self.start(surface)
        self.observe(mode)

    # --- facts --------------------------------------------------------------------------------------------------

    def tell(self, payload: msgspec.Struct, id: str = "", correlation: str = "", causation: int = 0) -> Output | None:
        """Append a fact, as it comes back from its bytes."""
        self.seconds += 0.001
        self.facts += 1
        name, raw = type_of(payload), encode(payload)
        id = id or f"fact-{self.facts}"
        seen = decode(name, raw)
        if len(raw) > DATA_BYTES_MAX:  # as the intake does; nobody reads it back here
            blob = {"sha256": sha256(raw).hexdigest(), "size": len(raw), "media_type": "application/json"}
            raw = msgspec.json.encode({"blob": blob})
        draft = Draft(name, seen, raw, id, "tests", correlation or id, causation)
        now = time_after(START, self.seconds)
        out = self.engine.finish(causation, draft, now) if causation else self.engine.accept(draft, now)
        self.history += out.events if out else []
        return out

    def start(self, surface: str = "daemon") -> None:
        """A process starts."""
        self.tell(DaemonStarted(version="0", python="3", surface=surface))

    def observe(self, mode: str) -> None:
        """The surfaces are read, and declare this mode."""
        for event in list(self.engine.effects.open.values()):
            if isinstance(event.data, KernelReadRequested):
                self.end(event, msgspec.structs.replace(kernel(mode), request=event.position))
                return
        self.tell(kernel(mode))

    def request(self, given: PlanText | Waits | None, run_id: str = RUN, **more: Any) -> str:
        """Ask for a run; its id."""
        if given is not None and not isinstance(given, PlanText):
            given = plan(given)
        fields: dict[str, Any] = {"intent": "do it", "config": config(), **more}
        asked = RunRequested(run_id=run_id, plan=given, **fields)
        self.tell(asked, run_id, run_id)
        return run_id

    def end(self, request: Event, outcome: msgspec.Struct) -> None:
        """Give an effect its outcome."""
        self.tell(outcome, f"{request.position}.outcome", request.correlation, request.position)

    # --- going on -----------------------------------------------------------------------------------------------

    def open(self, kind: type[msgspec.Struct]) -> list[Event]:
        """The open effects of this kind, oldest first."""
        return [event for event in self.engine.effects.open.values() if isinstance(event.data, kind)]

    def step(self) -> bool:
        """Perform the oldest attempt or call that has an outcome; whether there was one."""
        for event in self.open(TaskAttemptRequested) + self.open(PlannerCallRequested):
            outcome = (self.tool if isinstance(event.data, TaskAttemptRequested) else self.planner)(event)
            if outcome is not None:
                self.end(event, outcome)
                return True
        return False

    def wake(self) -> bool:
        """Let the time pass until the next timer fires; whether there was one."""
        timers = [(event.data.at, event.position, event) for event in self.open(TimerRequested)]
        timers += [(ends_at(event), event.position, event) for event in self.open(RunRequested)]
        if not timers:
            return False
        at, _, first = min(timers)
        left = (parse_time(at) - parse_time(time_after(START, self.seconds))).total_seconds()
        self.seconds += max(left, 0.0)
        name = first.data.name if isinstance(first.data, TimerRequested) else f"run {first.data.run_id}"
        self.end(first, TimerFired(request=first.position, name=name))
        return True

    def run(self, run_id: str = RUN) -> RunEnded | RunRefused:
        """Go on until the run is over; how it ended."""
        while (over := self.over(run_id)) is None:
            assert self.step() or self.wake(), f"nothing goes on: {[event.type for event in self.history[-20:]]}"
        return over

    # --- looking ------------------------------------------------------------------------------------------------

    def over(self, run_id: str = RUN) -> RunEnded | RunRefused | None:
        """How the run ended, if it has."""
        ends: list[RunEnded | RunRefused] = [*self.of(RunEnded), *self.of(RunRefused)]
        return next((end for end in ends if end.run_id == run_id), None)

    def of(self, kind: type[P]) -> list[P]:
        """The payloads of this kind."""
        return [event.data for event in self.history if type(event.data) is kind]

    def events(self, kind: type[msgspec.Struct]) -> list[Event]:
        """The events that carry such a payload."""
        return [event for event in self.history if type(event.data) is kind]
