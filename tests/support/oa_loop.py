"""The OA and the kernel watcher together, driven in log order as the engine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.oa.actor import Oa
from pmagent.actors.oa.state import OaActorState
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa import (
    OaBootRequested,
    OaPermitRequested,
)
from pmagent.contracts.payload import Correlated, encode, type_of
from pmagent.events.event import Event, time_after

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]
START = "2026-11-21T18:00:00.000000Z"
STARTED = DaemonStarted(version="0", python="3", surface="daemon")


class Loop:
    """Both actors over one growing log: events in log order, each actor in turn, decisions appended."""

    def __init__(self) -> None:
        self.actors: list[AnyActor] = [KernelWatcher(), Oa()]
        self.states: dict[str, Any] = {actor.name: actor.initial() for actor in self.actors}
        self.log: list[Event] = []
        self.done = 0
        self.seconds = 0.0

    def tell(self, *payloads: msgspec.Struct) -> list[Any]:
        """Append facts as one batch; returns the payloads of the decisions that follow."""
        before = len(self.log)
        for payload in payloads:
            self._append(payload, "fact", "test", 0)
        while self.done < len(self.log):
            event = self.log[self.done]
            self.done += 1
            for actor in self.actors:
                if type(event.data) in actor.hears:
                    self._wake(actor, event)
        return [event.data for event in self.log[before:] if event.kind == "decision"]

    def _wake(self, actor: AnyActor, event: Event) -> None:
        self.states[actor.name] = actor.evolve(self.states[actor.name], event)
        for payload in list(actor.decide(self.states[actor.name], event)):
            bare = payload.payload if isinstance(payload, Correlated) else payload
            own = self._append(bare, "decision", actor.name, event.position)
            self.states[actor.name] = actor.evolve(self.states[actor.name], own)

    def _append(self, payload: msgspec.Struct, kind: Any, actor: str, causation: int) -> Event:
        position = len(self.log) + 1
        event = Event(
            position, time_after(START, self.seconds), f"{position}", kind, actor, type_of(payload), "", causation,
            payload, encode(payload),
        )
        self.log.append(event)
        return event

    def last(self, kind: type[msgspec.Struct]) -> int:
        """Position of the last event with such a payload."""
        return next(event.position for event in reversed(self.log) if isinstance(event.data, kind))

    @property
    def oa(self) -> OaActorState:
        """The OA's state."""
        state: OaActorState = self.states["oa"]
        return state


def of(kind: type[Any], payloads: list[Any]) -> list[Any]:
    return [payload for payload in payloads if isinstance(payload, kind)]


def permit(action: str = "feature_work", **more: Any) -> OaPermitRequested:
    return OaPermitRequested(**({"action": action, "subject": "run-1", "holder": "orchestrator"} | more))


def boot(name: str = "oa-session-1") -> OaBootRequested:
    return OaBootRequested(session_id=name, workspace="/w")
