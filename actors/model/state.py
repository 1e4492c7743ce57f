"""The gateway's state: open questions, calls under way, and what each run has used; pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from pmagent.contracts.model import ModelAsked, ModelLimits, ModelPrice, ModelUsage
from pmagent.contracts.payload import encode
from pmagent.events.event import Event, time_after

ASKS_MAX = 256
"""So many questions are open at once; a further one is refused (``busy``)."""

RUNS_MAX = 1024
"""So many runs are remembered. Beyond it the idle one whose first question is oldest is forgotten, and with it what it
has used."""

BYTES_PER_TOKEN = 4
"""For estimates, where no provider counts."""

IMAGE_TOKENS = 1_600
"""The same, of one image: about what providers count for a large one."""

replace = msgspec.structs.replace


class Ask(msgspec.Struct, frozen=True):
    """The open question at position ``asked``.

    ``run``: the run whose limits hold, ``correlation`` and ``asker`` those of the question. ``deadline``: log time at
    which the run's time is over. ``doing``: queued (for one of the run's places), permit (asked for at position
    ``request``), call (requested at ``request``), or pause (before another attempt). ``permit``: position of the grant.
    ``deadline_timer`` and ``pause_timer`` are positions of requests; 0: none. ``size``: its bytes as JSON, beside which
    its images count as so many ``image_tokens``. ``waiting``: log time of its first pause ("": none).
    """

    asked: int
    run: str
    correlation: str
    asker: str
    model: str
    action: str
    limits: ModelLimits
    price: ModelPrice | None
    size: int
    deadline: str
    doing: Literal["queued", "permit", "call", "pause"] = "queued"
    request: int = 0
    permit: int = 0
    attempts: int = 0
    deadline_timer: int = 0
    pause_timer: int = 0
    image_tokens: int = 0
    waiting: str = ""


class Call(msgspec.Struct, frozen=True):
    """A call without an end yet. It may outlive its question (it is being stopped then), but not its run."""

    run: str
    price: ModelPrice | None
    tokens: int


class Run(msgspec.Struct, frozen=True):
    """A run's use since its first question at log time ``since``: calls requested, tokens, US dollars."""

    since: str
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class GatewayState(msgspec.Struct, frozen=True):
    """All of it: questions by their position, calls by their request's, runs by name.

    Of the event taken last: ``answered`` is the question that it ended by a reply, ``stirred`` the run ("": none) in
    which a question may be begun or gone on with because of it.
    """

    asks: dict[int, Ask] = {}
    calls: dict[int, Call] = {}
    runs: dict[str, Run] = {}
    answered: Ask | None = None
    stirred: str = ""

    def slots_used(self, run: str) -> int:
        """How many of the run's calls are open or have a permit asked for."""
        calls = sum(call.run == run for call in self.calls.values())
        return calls + sum(ask.run == run and ask.doing == "permit" for ask in self.asks.values())

    def queued(self, run: str) -> list[Ask]:
        """The run's questions that wait for a place, oldest first."""
        return [ask for ask in self.asks.values() if ask.run == run and ask.doing == "queued"]

    def waiting_for(self, request: int) -> Ask | None:
        """The question whose permit request or call is at this position."""
        return next((ask for ask in self.asks.values() if request and ask.request == request), None)


def asked(state: GatewayState, event: Event, ask: ModelAsked) -> GatewayState:
    """A question has come; whether it is taken is decided after."""
    run = event.correlation or f"position {event.position}"  # a question of no run is a run of its own
    runs = state.runs
    if run not in runs:
        runs = {**_without_oldest_idle(state), run: Run(event.time)}
    new = Ask(
        event.position, run, event.correlation, event.actor, ask.model, ask.action, ask.limits, ask.price,
        len(encode(ask)), time_after(runs[run].since, ask.limits.seconds), image_tokens=image_tokens(ask),
    )
    return replace(state, asks={**state.asks, event.position: new}, runs=runs, stirred=run)


def image_tokens(ask: ModelAsked) -> int:
    """The tokens that the images of a question are taken to count."""
    return sum(len(message.images) for message in ask.messages if message.images) * IMAGE_TOKENS


def _without_oldest_idle(state: GatewayState) -> dict[str, Run]:
    if len(state.runs) < RUNS_MAX:
        return state.runs
    busy = {ask.run for ask in state.asks.values()} | {call.run for call in state.calls.values()}
    oldest = next((name for name in state.runs if name not in busy), None)  # runs stand in the order of their beginning
    return {name: run for name, run in state.runs.items() if name != oldest}


def changed(state: GatewayState, ask: Ask) -> GatewayState:
    """``ask`` stands as it is now."""
    return replace(state, asks={**state.asks, ask.asked: ask})


def ended(state: GatewayState, position: int) -> GatewayState:
    """The question at ``position`` is not open any more."""
    if position not in state.asks:
        return state
    return replace(state, asks={at: ask for at, ask in state.asks.items() if at != position})


def called(state: GatewayState, ask: Ask, position: int) -> GatewayState:
    """The call at ``position`` has been requested for ``ask``."""
    run = state.runs[ask.run]
    tokens = ask.size // BYTES_PER_TOKEN + ask.image_tokens
    calling = changed(state, replace(ask, doing="call", request=position, attempts=ask.attempts + 1))
    return replace(
        calling, calls={**state.calls, position: Call(ask.run, ask.price, tokens)},
        runs={**state.runs, ask.run: replace(run, calls=run.calls + 1)},
    )


def call_over(state: GatewayState, position: int, usage: ModelUsage | None) -> GatewayState:
    """The call at ``position`` has ended, and used so much."""
    call = state.calls.get(position)
    if call is None:
        return state
    runs = state.runs
    if usage is not None:
        runs = {**runs, call.run: _charged(runs[call.run], call.price, usage)}
    calls = {at: other for at, other in state.calls.items() if at != position}
    return replace(state, calls=calls, runs=runs, stirred=call.run)


def unknown_usage(state: GatewayState, position: int) -> ModelUsage | None:
    """The usage that a call without a reply is taken to have: the provider may have read the question."""
    call = state.calls.get(position)
    return None if call is None else ModelUsage(input_tokens=call.tokens, output_tokens=0, counted=False)


def _charged(run: Run, price: ModelPrice | None, usage: ModelUsage) -> Run:
    cost = 0.0
    if price is not None:
        cost = (usage.input_tokens * price.input_usd + usage.output_tokens * price.output_usd) / 1_000_000
    return replace(
        run, tokens=run.tokens + usage.input_tokens + usage.output_tokens, cost_usd=run.cost_usd + cost
    )


