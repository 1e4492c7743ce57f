"""The limits of a question and its run, and how long to pause before another attempt; pure."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from pmagent.actors.model.state import ASKS_MAX, Ask, GatewayState, Run
from pmagent.contracts.model import PROMPT_BYTES_MAX, ModelAsked, ModelLimits
from pmagent.contracts.reasoning import PAYLOADS
from pmagent.events.event import parse_time

PAUSE_SECONDS_MAX = 60.0
"""Pauses double from one second up to this; a provider that asks for a longer one gets it."""


class Stop(NamedTuple):
    """Why a question gets no (further) call: the code and text of ``model.failed``."""

    code: str
    text: str


def objection(state: GatewayState, ask: Ask, asked: ModelAsked, now: str) -> Stop | None:
    """Why the question that has just come is not taken. None: it is."""
    if len(state.asks) > ASKS_MAX:
        return Stop("busy", f"{ASKS_MAX} questions are open already; ask again when some have ended")
    if not asked.model:
        return Stop("invalid", "the question names no model")
    if asked.engine == "langchain" and not asked.messages:
        return Stop("invalid", "the question has no messages")
    if asked.engine == "dspy" and asked.program not in PAYLOADS:
        return Stop("invalid", f"there is no program {asked.program!r}")
    if ask.size > PROMPT_BYTES_MAX:
        return Stop("too_long", f"the question has {ask.size} bytes; {PROMPT_BYTES_MAX} are allowed")
    if ask.limits.cost_usd is not None and ask.price is None:
        return Stop("no_price", f"the run's cost is limited, and {ask.model} has no price")
    return exhausted(state.runs[ask.run], ask, now)


def exhausted(run: Run, ask: Ask, now: str) -> Stop | None:
    """The limit of the run that leaves no call for the question at log time ``now``.

    A call's use is known only afterwards, so the last one may go beyond ``tokens`` and ``cost_usd``; with
    ``concurrency`` above one, so may those beside it.
    """
    limits = ask.limits
    if now >= ask.deadline:
        return Stop("time", f"the run's {limits.seconds:g} seconds are over")
    if run.calls >= limits.calls:
        return Stop("calls", f"the run has made its {limits.calls} calls")
    if run.tokens >= limits.tokens:
        return Stop("tokens", f"the run has used {run.tokens} tokens; {limits.tokens} are allowed")
    price = ask.price
    costs = price is not None and (price.input_usd > 0 or price.output_usd > 0)
    if limits.cost_usd is not None and costs and run.cost_usd >= limits.cost_usd:
        return Stop("cost", f"the run has cost {run.cost_usd:.4f} US dollars; {limits.cost_usd:g} are allowed")
    return None


def seconds_left(ask: Ask, now: str) -> float:
    """Seconds from log time ``now`` to the question's deadline."""
    return (parse_time(ask.deadline) - parse_time(now)).total_seconds()


def waited_seconds(ask: Ask, now: str) -> float:
    """Seconds from the question's first pause to log time ``now``."""
    return (parse_time(now) - parse_time(ask.waiting or now)).total_seconds()


def calls_max(limits: ModelLimits) -> int:
    """No question makes more calls: beyond its attempts one for each pause that its patience has room for, six of which
    are shorter than a minute."""
    return limits.attempts + 6 + ceil(limits.patience_minutes) if limits.patience_minutes else limits.attempts


def pause_seconds(attempts: int, retry_after_s: float | None) -> float:
    """How long to wait after ``attempts`` calls that gave no reply: 1, 2, 4, … seconds, or what the provider asks for
    if that is longer."""
    return max(min(2.0 ** (attempts - 1), PAUSE_SECONDS_MAX), retry_after_s or 0.0)
