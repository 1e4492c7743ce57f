"""Tools and planners in the simulation: how attempts and calls end, from good ends to all that must not harm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.orchestra.running.form import ends_at
from pmagent.contracts.orchestra import ARTIFACTS_MAX, Artifact
from pmagent.contracts.orchestra_events import (
    LAST_LINES_MAX,
    Captured,
    PlannerCallRequested,
    PlannerFailed,
    PlannerFailure,
    PlannerReplied,
    RunEnded,
    RunRefused,
    RunRequested,
    TaskAttemptRequested,
    TaskExited,
    TaskUnstarted,
)
from pmagent.events.event import Event
from pmagent.replay.areas.kernel import timer
from pmagent.replay.areas.runs import Task, plan, spoil
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.world import World

CODES: Final = (1, 2, 77, 126, 127, 255)
NOT_RUN: Final = (126, 127)
SIGNALS: Final = (6, 9, 11, 15, 64)
BOUNDS: Final = ("memory", "output", "processes")
CONTENTS: Final = (b"", *(b"rows watered: %d\n" % number for number in range(5)), b"row\n" * 30_000)
"""Output and files of tools; the blob store holds them before any event names them."""

PLANNER_FAULTS: Final[dict[str, tuple[PlannerFailure, bool]]] = {
    "planner: times out": ("timed_out", True),
    "planner: refuses": ("refused", False),
    "planner: is not there": ("not_installed", False),
    "planner: exits": ("exited", True),
}
"""Fault -> how the call fails, and whether asking again may help."""

PLANNER_LIES: Final = ("planner: garbage", "planner: circle", "planner: tool outside the whitelist", "planner: no list")


class Attempts:
    """The performer of tasks' attempts. Beside good ends: all that a program and its sandbox can do."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("attempts")
        self._secret = secret

    def seconds(self, asked: TaskAttemptRequested, usual: float) -> tuple[float, bool]:
        """How long the attempt takes, and whether that is its whole time, which ends it."""
        over = usual >= asked.seconds or self._world.faults.strike("attempt: times out")
        return (asked.seconds, True) if over else (usual, False)

    def outcome(self, event: Event, *, timed_out: bool) -> TaskExited | TaskUnstarted:
        """How the attempt that ``event`` requests ends."""
        faults, random = self._world.faults, self._random
        if timed_out:
            return self._exited(event, exit_code=None, signal=9, timed_out=True)
        if faults.strike("attempt: cannot start now"):
            return self._unstarted(event, again=True)
        if faults.strike("attempt: cannot start at all"):
            return self._unstarted(event, again=False)
        if faults.strike("attempt: exits with a failure"):
            code = random.choice(CODES)
            return self._exited(event, exit_code=code, again=code not in NOT_RUN)
        if faults.strike("attempt: killed by a signal"):
            return self._exited(event, exit_code=None, signal=random.choice(SIGNALS))
        if faults.strike("attempt: exceeds a bound"):
            return self._exited(event, exit_code=None, signal=9, exceeded=random.choice(BOUNDS))
        if faults.strike("attempt: violates"):  # though it says that all went well
            return self._exited(event, violations=[f"wrote /etc/passwd of {self._secret}"])
        if faults.strike("attempt: ends without a word"):
            return self._exited(event, exit_code=None, signal=None)
        if faults.strike("attempt: floods"):
            return self._exited(event, exit_code=random.choice((0, 1)), **self._flood())
        return self._exited(event)

    def _unstarted(self, event: Event, *, again: bool) -> TaskUnstarted:
        asked: TaskAttemptRequested = event.data
        return TaskUnstarted(
            request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt,
            reason=f"no sandbox with {self._secret}", mend="pmagent doctor", again=again,
            security=not again and self._random.random() < 0.5,
        )

    def _exited(self, event: Event, **more: Any) -> TaskExited:
        asked: TaskAttemptRequested = event.data
        left = self._left("stdout")
        captured = Captured(sha256=left.checksum, size_bytes=left.size_bytes, total_bytes=left.size_bytes, cut=False)
        fields: dict[str, Any] = {
            "exit_code": 0, "signal": None, "timed_out": False, "exceeded": "", "stdout": captured, "stderr": captured,
            "last_lines": [f"watered with token={self._secret}"], "artifacts": [left, self._left("rows/watered.txt")],
            "duration_ms": self._random.randrange(1500),
        }
        return TaskExited(
            request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt,
            **(fields | more),
        )

    def _left(self, path: str) -> Artifact:
        content = self._random.choice(CONTENTS)
        return Artifact(path=path, size_bytes=len(content), checksum=sha256(content).hexdigest())

    def _flood(self) -> dict[str, Any]:
        left = [self._left(f"{'x' * 200}/{number}") for number in range(ARTIFACTS_MAX)]
        return {
            "last_lines": ["A\x1b[5m" * 12_000] * LAST_LINES_MAX,
            "artifacts": [msgspec.structs.replace(one, gap_at=one.size_bytes, gap_bytes=2**30) for one in left],
            "refusals": ["x.example is not allowed"] * 3, "notes": ["too large to keep"] * 500,
        }


class Planners:
    """The performer of the planner's calls."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("planners")
        self._secret = secret

    def outcome(self, event: Event, asked: RunRequested) -> PlannerReplied | PlannerFailed:
        """How the call that ``event`` requests ends, for the run ``asked`` for."""
        for fault, (code, again) in PLANNER_FAULTS.items():
            if self._world.faults.strike(fault):
                return PlannerFailed(
                    request=event.position, run_id=asked.run_id, code=code, text=f"it says {self._secret}", mend="",
                    again=again, duration_ms=self._random.randrange(9000),
                )
        return PlannerReplied(
            request=event.position, run_id=asked.run_id, text=self._text(event.data, asked), model="sim",
            duration_ms=self._random.randrange(9000), tokens=self._random.randrange(9000),
        )

    def _text(self, call: PlannerCallRequested, asked: RunRequested) -> str:
        world = self._world
        lie = next((lie for lie in PLANNER_LIES if world.faults.strike(lie)), "").removeprefix("planner: ")
        if lie == "garbage":
            return self._random.choice(("", "Sure!", "[{", "[" * 500, "{}", f"[]{self._secret}", "null", "x" * 500_000))
        tasks = plan(self._random, asked.config, f"r{call.revision}-{call.attempt}-", _done(call.prompt))
        if lie == "no list":
            return msgspec.json.encode({task["task_id"]: task for task in tasks}).decode()
        if lie:
            spoil(tasks, lie)
        if world.faults.strike("planner: talks around it"):
            return f"Here you are:\n```json\n{_json(tasks)}\n```\nToken: {self._secret}"
        return _json(tasks)


def asked(history: Sequence[Event], call: Event) -> RunRequested:
    """The request for the run that was open when ``call`` was requested for it."""
    before = history[: call.position]
    over = {event.data.request for event in before if isinstance(event.data, RunRefused | RunEnded)}
    requests = [event for event in before if isinstance(event.data, RunRequested) and event.position not in over]
    found: RunRequested = next(event.data for event in requests if event.data.run_id == call.data.run_id)
    return found


def _json(tasks: list[Task]) -> str:
    return msgspec.json.encode(tasks).decode()


def _done(prompt: str) -> list[str]:
    """The tasks that the prompt says are done, as a planner reads it."""
    _, _, facts = prompt.partition("<facts>\n")
    if not facts:
        return []
    decoded = msgspec.json.decode(facts.partition("\n</facts>")[0])
    return [task["task_id"] for task in decoded["done"]]


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    world, attempts = context.world, Attempts(context.world, context.secret)
    planners = Planners(context.world, context.secret)

    def perform(running: Running, seconds: float) -> float:
        if world.faults.strike("attempt: answers late"):
            seconds = between(world.chance.stream("attempts: late"), 1.0, 40.0)
        seconds, timed_out = attempts.seconds(running.event.data, seconds)
        end = partial(attempts.outcome, running.event, timed_out=timed_out)
        world.later(seconds, "attempt", lambda: context.answer(running, end()))
        return seconds

    return {
        TaskAttemptRequested: Performance(
            partial(attempts.outcome, timed_out=False), "attempt: never returns", "attempt: answers twice", perform
        ),
        RunRequested: timer(context, ends_at, lambda event: f"run {event.data.run_id}"),
        PlannerCallRequested: Performance(
            lambda event: planners.outcome(event, asked(context.history(), event)), "planner: hangs",
            "planner: answers twice",
        ),
    }
