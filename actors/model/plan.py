"""The gateway's decisions on one event, gathered; pure."""

from __future__ import annotations

from pmagent.actors.model.limits import Stop, calls_max, exhausted, seconds_left
from pmagent.actors.model.state import Ask, GatewayState, ended
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.model import ModelCallRequested, ModelFailed
from pmagent.contracts.oa import OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event, time_after

DEADLINE = "deadline"
PAUSE = "pause"
"""The purpose of a timer: the first word of its name; the second is the question's position."""


class Plan:
    """Decisions on ``event``, in order, in ``decisions``; ``state`` forgets the questions that they end."""

    def __init__(self, state: GatewayState, event: Event) -> None:
        self.state = state
        self.decisions: list[Payload | Correlated] = []
        self._event = event
        self._stirred = state.stirred

    def say(self, ask: Ask, payload: Payload) -> None:
        """Decide ``payload``, which belongs to the run of ``ask`` whatever led to it."""
        foreign = ask.correlation != self._event.correlation
        self.decisions.append(Correlated(payload, ask.correlation) if foreign else payload)

    def wake(self, ask: Ask, what: str, at: str) -> None:
        """Ask for the timer that is the ask's deadline, or the end of its pause."""
        self.say(ask, TimerRequested(at=at, name=f"{what} {ask.asked}"))

    def clear(self, ask: Ask) -> None:
        """Take back what still runs for a question that has ended: its call and its timers."""
        over: object = getattr(self._event.data, "request", 0)
        calls = [ask.request] if ask.request in self.state.calls else []
        for position in (*calls, ask.pause_timer, ask.deadline_timer):
            if position and position != over:
                self.say(ask, EffectCancelRequested(request=position))

    def fail(self, ask: Ask, why: Stop) -> None:
        """End the question without a reply. A place that it had is free."""
        self.clear(ask)
        self.say(ask, ModelFailed(ask=ask.asked, code=why.code, text=why.text, attempts=ask.attempts))
        self.state = ended(self.state, ask.asked)
        self._stirred = ask.run

    def go_on(self) -> None:
        """The last step: give the free places of the run that the event concerns to the questions that wait for one,
        oldest first. Those for which the run has nothing left fail."""
        run = self._stirred
        taken = self.state.slots_used(run)
        calls = 0
        for ask in self.state.queued(run):
            used = self.state.runs[run]
            why = exhausted(used, ask, self._event.time)
            if why is None and used.calls + calls >= ask.limits.calls:
                why = Stop("calls", f"the run has made its {ask.limits.calls} calls")
            if why is not None:
                self.fail(ask, why)
                continue
            if taken >= ask.limits.concurrency:
                return
            taken += 1
            calls += ask.permit != 0
            self._begin(ask)

    def _begin(self, ask: Ask) -> None:
        left = seconds_left(ask, self._event.time)
        if not ask.permit:
            uses = calls_max(ask.limits)
            self.say(ask, OaPermitRequested(
                action=ask.action, subject=f"model:{ask.model}", holder="model", uses=uses, seconds=left,
            ))
            return
        self.say(ask, ModelCallRequested(
            permit=ask.permit, ask=ask.asked, attempt=ask.attempts + 1, model=ask.model, action=ask.action,
            seconds=min(ask.limits.call_seconds, left),
        ))

    def pause(self, ask: Ask, seconds: float) -> None:
        """Wait before the next attempt."""
        self.wake(ask, PAUSE, time_after(self._event.time, seconds))
