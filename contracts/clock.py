"""Durable timers: a request now, a fact later, across restarts (docs/design.md §4.4)."""

from __future__ import annotations

from pmagent.contracts.payload import Effect, Payload, event_type


@event_type(
    "timer.requested", effect=Effect(repeatable=True, limit_s=None, concurrency=100_000, outcomes=("timer.fired",))
)
class TimerRequested(Payload, frozen=True, kw_only=True):
    """Wake me at ``at`` (log time) or as soon after it as the daemon runs. ``name`` is the requester's own word."""

    at: str
    name: str = ""


@event_type("timer.fired")
class TimerFired(Payload, frozen=True, kw_only=True):
    """The timer requested at position ``request`` is due; the event's time is not before the requested one."""

    request: int
    name: str = ""
