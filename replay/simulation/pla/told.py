"""What a history tells of one proposal and of one execution."""

from __future__ import annotations

from contracts.pla_events import PlaExecutionRequested, PlaProposed
from events.event import Event


class Proposal:
    """A proposal and what came of it."""

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
        self.asked: PlaExecutionRequested = event.data
        self.approval = approval
        self.prepared = False
        self.ordered: list[int] = []
        self.told = ""
        self.end: Event | None = None
