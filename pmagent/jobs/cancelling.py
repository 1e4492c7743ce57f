"""Who wanted a job to end, and what was said to it."""

from __future__ import annotations

import msgspec

from contracts.audit_events import AuditCancelAnswered, AuditCancelRequested
from contracts.orchestra_events import RunCancelAnswered, RunCancelRequested
from events.event import Event


class Cancelling(msgspec.Struct, frozen=True):
    """Somebody (``operator`` over ``channel``, as far as it is known) wanted the job to end. ``answer`` is empty where
    that was accepted, else says why not; None: there is none yet."""

    position: int
    time: str
    reason: str
    operator: str
    channel: str
    answer: str | None = None


class Cancels:
    """All that was wanted of one job, folded from its events. For one thread at a time."""

    def __init__(self) -> None:
        self._found: dict[int, Cancelling] = {}

    def fold(self, event: Event) -> None:
        """Take an event of the job's correlation."""
        data = event.data
        if isinstance(data, RunCancelRequested | AuditCancelRequested):
            self._found[event.position] = Cancelling(
                event.position, event.time, data.reason, data.operator_id, data.channel
            )
        elif isinstance(data, RunCancelAnswered | AuditCancelAnswered) and data.request in self._found:
            answer = "" if data.accepted else data.text or "refused"
            self._found[data.request] = msgspec.structs.replace(self._found[data.request], answer=answer)

    def all(self) -> list[Cancelling]:
        """In the order in which they were asked for."""
        return list(self._found.values())
