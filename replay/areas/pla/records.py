"""The state of one proposal and of one execution, as a history shows it."""

from __future__ import annotations

from pmagent.contracts.pla_events import PlaArmRequested, PlaExecutionRequested, PlaProposed
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require


class Proposal:
    """A proposal and its outcome."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.proposed: PlaProposed = event.data
        self.approval: Event | None = None
        self.rejected = False
        self.outcome = ""


class Execution:
    """An execution that the warden asked for. ``ordered``: positions of the orders that the gate let through."""

    def __init__(self, event: Event, approval: Event) -> None:
        self.event = event
        self.request: PlaExecutionRequested = event.data
        self.approval = approval
        self.prepared = False
        self.ordered: list[int] = []
        self.device_state = ""
        self.end: Event | None = None


def require_mode_kept(asked: Event | None, event: Event) -> None:
    """A request to arm is answered, and changes neither the mode nor a proposal. Raises Violation."""
    if asked is not None and isinstance(asked.data, PlaArmRequested) and asked.data.keeps_mode:
        led = event.actor == "warden"
        require(not led, f"the request to arm at {asked.position} led to {event.type} at {event.position}")
