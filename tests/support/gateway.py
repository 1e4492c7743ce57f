"""The gateway on a bench: questions of named runs, permits as told; ends of calls, timers and the time by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Output
from pmagent.actors.model.actor import Gateway
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.model import (
    ModelAsked,
    ModelCallFailed,
    ModelCallRequested,
    ModelFailed,
    ModelLimits,
    ModelMessage,
    ModelReplied,
    ModelUsage,
    ModelWithdrawn,
)
from pmagent.contracts.oa import OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Payload, decode, encode, type_of
from pmagent.events.event import Draft, Event, parse_time, time_after
from tests.support.toys import START, Bench, Grantor


def question(limits: ModelLimits | None = None, **more: Any) -> ModelAsked:
    """A question to the model ``toy:one``, permitted as ``feature_work``."""
    given: dict[str, Any] = {
        "engine": "langchain", "model": "toy:one", "action": "feature_work",
        "messages": [ModelMessage(role="user", content="what is it?")],
    }
    return ModelAsked(**(given | {"limits": limits or ModelLimits()} | more))


class Refuser:
    """Refuses every permit."""

    name = "oa"
    hears: frozenset[type[msgspec.Struct]] = frozenset((OaPermitRequested,))

    def initial(self) -> None:
        """Nothing to remember."""

    def evolve(self, state: None, event: Event) -> None:
        """See initial."""

    def decide(self, state: None, event: Event) -> Iterable[Payload]:
        """No, for two reasons."""
        del state
        asked: OaPermitRequested = event.data
        yield OaPermitRefused(
            request=event.position, action=asked.action, subject=asked.subject, reasons=["not today", "not here"],
            mend=[],
        )


class GatewayBench(Bench):
    """See the module. ``seconds`` is the time since the start."""

    def __init__(self, actors: Iterable[AnyActor] = (), gateway: Gateway | None = None) -> None:
        super().__init__([*(actors or [Grantor()]), gateway or Gateway()])
        self.seconds = 0.0
        self.facts = 0

    @property
    def now(self) -> str:
        """The time."""
        return time_after(START, self.seconds)

    def take(self, payload: msgspec.Struct, run: str = "run", actor: str = "asker", causation: int = 0) -> Output:
        """A fact of the run; what came of it."""
        self.facts += 1
        raw = encode(payload)
        draft = Draft(type_of(payload), decode(type_of(payload), raw), raw, f"fact-{self.facts}", actor, run, causation)
        out = self.engine.accept(draft, self.now)
        assert out is not None, "a new fact"
        self.history += out.events
        return out

    def ask(self, limits: ModelLimits | None = None, run: str = "run", **more: Any) -> int:
        """A question; its position."""
        return self.take(question(limits, **more), run).events[0].position

    def withdraw(self, ask: int, actor: str = "asker", run: str = "run") -> None:
        """The word of ``actor`` that the question is to be forgotten."""
        self.take(ModelWithdrawn(ask=ask), run, actor)

    # --- calls --------------------------------------------------------------------------------------------------

    def open(self, cls: type[msgspec.Struct]) -> list[Event]:
        """Requests of this type that have no end yet, in order."""
        return [event for event in self.engine.effects.open.values() if type(event.data) is cls]

    @property
    def calls(self) -> list[Event]:
        """Calls that have no end yet."""
        return self.open(ModelCallRequested)

    def end(self, request: Event, payload: msgspec.Struct) -> None:
        """The end of a call or timer."""
        draft = Draft(
            type_of(payload), payload, encode(payload), f"{request.position}.outcome", "model", request.correlation,
            request.position,
        )
        out = self.engine.finish(request.position, draft, self.now)
        self.history += out.events if out else []

    def reply(self, call: Event, tokens: int = 10, content: str = "{}") -> None:
        """The call's reply, of so many tokens, half in and half out."""
        usage = ModelUsage(input_tokens=tokens // 2, output_tokens=tokens - tokens // 2, counted=True)
        self.end(call, ModelReplied(
            request=call.position, ask=call.data.ask, content=content, tool_calls=[], usage=usage, latency_ms=1,
        ))

    def fail(
        self, call: Event, code: Any = "overloaded", *, transient: bool = True, after: float | None = None
    ) -> None:
        """The call gives no reply."""
        self.end(call, ModelCallFailed(
            request=call.position, ask=call.data.ask, code=code, error="ToyError", transient=transient,
            retry_after_s=after,
        ))

    # --- timers -------------------------------------------------------------------------------------------------

    def timer(self, what: str, ask: int) -> Event:
        """The open timer ``deadline`` or ``pause`` of the question."""
        [timer] = [timer for timer in self.open(TimerRequested) if timer.data.name == f"{what} {ask}"]
        return timer

    def due(self, timer: Event) -> float:
        """Seconds from now to the time that the timer is for."""
        return (parse_time(timer.data.at) - parse_time(self.now)).total_seconds()

    def fire(self, timer: Event) -> None:
        """Let the time come for which the timer is."""
        self.seconds += max(self.due(timer), 0.0)
        self.end(timer, TimerFired(request=timer.position, name=timer.data.name))

    def settle(self) -> None:
        """Carry out what has been cancelled, as the runtime does."""
        for position, reason in list(self.engine.effects.cancelled.items()):
            request = self.engine.effects.open[position]
            self.end(request, EffectCancelled(request=position, reason=reason))

    # --- ends ---------------------------------------------------------------------------------------------------

    def failures(self, ask: int) -> list[ModelFailed]:
        """Every ``model.failed`` of the question."""
        return [event.data for event in self.of(ModelFailed) if event.data.ask == ask]

    def failure(self, ask: int) -> ModelFailed:
        """The one end of the question, which has no reply."""
        [failed] = self.failures(ask)
        assert not [event for event in self.of(ModelReplied) if event.data.ask == ask]
        return failed
