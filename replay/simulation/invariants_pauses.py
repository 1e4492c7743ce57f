"""Laws of the stop switch, computed from the events themselves.

``Pauses`` follows a history as it becomes durable, ``check_pauses`` holds for any prefix of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pmagent.contracts.control import EffectsPaused, EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectInterrupted, EffectRefused
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import OutwardRequest
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require

GATE: Final = "gate"


class Pauses:
    """Whether effects are paused after the events taken so far, and which requests are held."""

    def __init__(self) -> None:
        self.since = 0
        """Position of the request that paused them; 0 while they start."""
        self.held: dict[int, str] = {}
        """Requests that wait for the end of the pause, with the time at which their permit expires."""
        self._expires: dict[int, str] = {}

    def take(self, event: Event) -> None:
        """The next event."""
        data = event.data
        if event.kind == "fact":
            self.held.pop(event.causation, None)
            return
        match data:
            case OaPermitGranted(expires_at=expires_at):
                self._expires[event.position] = expires_at
            case EffectsPaused(request=request) if event.actor == GATE:
                self.since = self.since or request
            case EffectsResumed() if event.actor == GATE:
                self.since, self.held = 0, {}
            case EffectRefused(request=request):
                self.held.pop(request, None)
            case OutwardRequest(permit=permit) if self.since:  # if it is refused, that is said next
                self.held[event.position] = self._expires.get(permit, "")


def check_pauses(history: Sequence[Event]) -> None:
    """Answers to pauses and resumptions tell the state then; a held effect is refused only if its permit has expired by
    the time of the resumption. Raises Violation."""
    pauses = Pauses()
    for event in history:
        data = event.data
        if isinstance(data, EffectInterrupted):
            require(event.causation not in pauses.held, f"effect {event.causation} is cut off, and was only held")
        if event.kind == "decision" and event.actor == GATE:
            if isinstance(data, EffectsPaused):
                _paused(history, event, data, pauses)
            elif isinstance(data, EffectsResumed):
                _resumed(history, event, data, pauses)
            elif isinstance(data, EffectRefused) and isinstance(history[event.causation - 1].data, ResumeRequested):
                where = f"effect {data.request}, refused at {event.position}"
                require(data.request in pauses.held, f"{where}: it was not held")
                asked_at = history[event.causation - 1].time
                require(asked_at >= pauses.held[data.request], f"{where}: its permit had not expired")
                same = event.correlation == history[data.request - 1].correlation
                require(same, f"{where}: who it belongs to does not hear of it")
        pauses.take(event)


def _paused(history: Sequence[Event], event: Event, data: EffectsPaused, pauses: Pauses) -> None:
    where = f"pause at {event.position}"
    asked = history[data.request - 1].data
    require(isinstance(asked, PauseRequested) and event.causation == data.request, f"{where}: nobody asked for it")
    require(data.since == (pauses.since or data.request), f"{where}: since {data.since}, not {pauses.since}")
    named = (data.operator_id, data.channel, data.reason)
    require(named == (asked.operator_id, asked.channel, asked.reason), f"{where}: {named} is not who asked, and why")


def _resumed(history: Sequence[Event], event: Event, data: EffectsResumed, pauses: Pauses) -> None:
    where = f"resumption at {event.position}"
    asked = history[data.request - 1]
    require(isinstance(asked.data, ResumeRequested) and event.causation == data.request, f"{where}: nobody asked")
    require(data.since == pauses.since, f"{where}: since {data.since}, not {pauses.since}")
    require((data.operator_id, data.channel) == (asked.data.operator_id, asked.data.channel), f"{where}: who asked")
    late = [request for request, until in pauses.held.items() if asked.time >= until]
    require(not late, f"{where}: {late} start though their permits have expired")
    require(data.held == len(pauses.held), f"{where}: {data.held} start, {len(pauses.held)} were held")
