"""Laws of configured checks, computed from the events themselves.

It holds for any prefix of a history; ``check_checks_idle`` for states that came to rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pmagent.contracts.checks import CheckAnswered, CheckRan, CheckRequested, CheckRunRequested
from pmagent.contracts.effect import EffectCancelRequested, EffectRefused
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require, there

RUNS_MAX: Final = 4
"""So many checks run at once."""
ATTEMPTS_MAX: Final = 3


class _Request:
    """A request for checks, and what came of it so far. ``ends``: name -> the event that ended its last run."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.asked: CheckRequested = event.data
        self.attempts: Counter[str] = Counter()
        self.ends: dict[str, Event] = {}
        self.answered = False


def check_checks(history: Sequence[Event]) -> None:
    """Nothing is run but what was asked for, few at a time, and each answer says what happened. Raises Violation."""
    check = _Check()
    for event in history:
        check.take(event)


def check_checks_idle(states: Mapping[str, Any]) -> None:
    """After everything came to rest the checker waits for nothing. Raises Violation."""
    left = states["checker"].open
    require(not left, f"requests for checks are open though nothing happens any more: {len(left)}")


class _Check:
    def __init__(self) -> None:
        self._requests: dict[int, _Request] = {}
        self._open: dict[int, Event] = {}
        self._taken_back: set[int] = set()

    def take(self, event: Event) -> None:
        data = event.data
        match data:
            case CheckRequested():
                self._requests[event.position] = _Request(event)
            case CheckRunRequested():
                self._begin(event, data)
            case CheckAnswered():
                self._answer(event, data)
            case EffectCancelRequested(request=request):
                self._taken_back.add(request)
            case EffectRefused(request=request):
                self._end(request, event)
        if event.kind == "fact":
            self._end(event.causation, event)

    def _begin(self, event: Event, run: CheckRunRequested) -> None:
        where = f"check {run.name!r} at {event.position}"
        request = there(self._requests.get(run.request), f"{where}: nobody asked for it")
        asked = request.asked
        wanted = [one for one in asked.checks if (one.name, one.argv) == (run.name, run.argv)]
        same = (run.kind, run.seconds, run.reads) == (asked.kind, asked.seconds, asked.reads)
        require(len(wanted) == 1 and same, f"{where}: something else was asked for")
        require(not request.answered, f"{where}: it is run though the request has been answered")
        require(event.correlation == request.event.correlation, f"{where}: it belongs to another request")
        request.attempts[run.name] += 1
        require(run.attempt == request.attempts[run.name] <= ATTEMPTS_MAX, f"{where}: it is attempt {run.attempt}")
        twice = any((one.data.request, one.data.name) == (run.request, run.name) for one in self._open.values())
        require(not twice, f"{where}: it runs already")
        self._open[event.position] = event
        running = len(self._open.keys() - self._taken_back)
        require(running <= RUNS_MAX, f"{where}: {running} checks run at once")

    def _end(self, run: int, event: Event) -> None:
        if (begun := self._open.pop(run, None)) is not None:
            self._requests[begun.data.request].ends[begun.data.name] = event

    def _answer(self, event: Event, answer: CheckAnswered) -> None:
        where = f"answer at {event.position}"
        request = self._requests.get(answer.request)
        require(request is not None and not request.answered, f"{where}: nobody waits for it")
        assert request is not None, "just required"
        request.answered = True
        require(event.correlation == request.event.correlation, f"{where}: it belongs to another request")
        if answer.error:
            require(not request.attempts, f"{where}: it tells of nothing that was run, though something was")
            return
        names = [one.name for one in request.asked.checks]
        require([one.name for one in answer.results] == names, f"{where}: its results are of other checks")
        for result in answer.results:
            end = request.ends.get(result.name)
            ran = end.data if end is not None and isinstance(end.data, CheckRan) else None
            require(result.ran == (ran is not None), f"{where}: {result.name} is told to have run: {result.ran}")
            good = ran is not None and ran.exit_code == 0 and not ran.timed_out and not ran.exceeded
            require(result.passed == good, f"{where}: {result.name} is told to have passed: {result.passed}")
