"""Who wanted a job to end."""

from __future__ import annotations

import msgspec

from contracts.audit_events import AuditCancelRequested
from contracts.orchestra_events import RunCancelRequested
from contracts.payload import typed
from events.reader import event_at
from pmagent.jobs.history import Jobs


class Cancelling(msgspec.Struct, frozen=True):
    """An operator (over ``channel``; both "" where they are not known) wanted the job to end, because of ``reason``."""

    position: int
    time: str
    operator: str
    channel: str
    reason: str


def cancelling(jobs: Jobs, position: int) -> Cancelling | None:
    """What the event at ``position`` wanted to end; None for an event of another kind, and for 0. Raises CorruptLog."""
    if not position:
        return None
    event = typed(event_at(jobs.storage, position), jobs.blobs)
    data = event.data
    if not isinstance(data, RunCancelRequested | AuditCancelRequested):
        return None
    return Cancelling(event.position, event.time, data.operator_id, data.channel, data.reason)
