"""The checker on a bench, under the real OA and kernel watcher: requests, readings, and ends of runs by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from pmagent.actors.checks.actor import Checker
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.oa.actor import Oa
from pmagent.contracts.checks import (
    CheckAnswered,
    CheckKind,
    CheckRan,
    CheckRequested,
    CheckResult,
    CheckRunRequested,
    CheckUnstarted,
    ConfiguredCheck,
)
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested
from pmagent.events.event import Event
from tests.support.oa_loop import STARTED
from tests.support.toys import Bench


def checks(*names: str) -> list[ConfiguredCheck]:
    """Checks of these names; what they would run is nobody's business here."""
    return [ConfiguredCheck(name=name, argv=[f"run-{name}", "-v"]) for name in names]


def ran(run: Event, exit_code: int = 0, **more: Any) -> CheckRan:
    """A run that ended by itself."""
    given: dict[str, Any] = {
        "request": run.position, "exit_code": exit_code, "signal": None, "timed_out": False, "duration_ms": 5,
        "stdout": "", "stderr": "", "cut": False,
    }
    return CheckRan(**(given | more))


class CheckBench(Bench):
    """See the module."""

    def __init__(self, actors: Iterable[AnyActor] = ()) -> None:
        super().__init__([*(actors or [KernelWatcher(), Oa()]), Checker()])

    def start(self, observed: KernelObserved) -> None:
        """An engine goes live, and the surfaces are read."""
        self.fact(STARTED)
        self.finish(self.of(KernelReadRequested)[-1].position, observed)

    def look(self, observed: KernelObserved) -> None:
        """The surfaces have changed."""
        self.fact(observed)

    def ask(self, *names: str, kind: CheckKind = "check", seconds: float = 60.0) -> int:
        """Ask for checks; the request's position."""
        out = self.fact(CheckRequested(kind=kind, checks=checks(*names), seconds=seconds))
        return out.events[0].position

    @property
    def runs(self) -> list[Event]:
        """Runs that have been requested and have not ended, the oldest first."""
        return [event for event in self.of(CheckRunRequested) if self.engine.effects.is_open(event.position)]

    def run_of(self, name: str) -> Event:
        """The open run of a check."""
        (found,) = (run for run in self.runs if run.data.name == name)
        return found

    def end(self, run: Event, payload: msgspec.Struct) -> None:
        """A run ends."""
        assert self.finish(run.position, payload) is not None, "it was open"

    def pass_all(self) -> None:
        """Every run that there is, and that comes of it, passes."""
        while self.runs:
            self.end(self.runs[0], ran(self.runs[0]))

    def settle(self) -> None:
        """Performers heed being stopped."""
        for position, reason in list(self.engine.effects.cancelled.items()):
            self.finish(position, EffectCancelled(request=position, reason=reason))

    def answers(self, request: int) -> list[CheckAnswered]:
        """The answers to a request; one at most, if all is well."""
        return [event.data for event in self.of(CheckAnswered) if event.data.request == request]

    def results(self, request: int) -> dict[str, CheckResult]:
        """The results of a request that has been answered, by name."""
        (answer,) = self.answers(request)
        return {result.name: result for result in answer.results}

    @property
    def idle(self) -> bool:
        """Whether the checker waits for nothing."""
        return not self.engine.states["checker"].open


def unstarted(run: Event) -> CheckUnstarted:
    """There was no such program."""
    return CheckUnstarted(request=run.position, text="there is no program", mend="install it")
