"""Which consequences of the PLA's faults (``faults.PLA_CONSEQUENCES``) a history shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pmagent.contracts.hid import HidOutcomeUnknown, HidTold
from pmagent.contracts.pla_events import (
    PlaDecisionRefused,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaViolation,
)
from pmagent.events.event import Event
from pmagent.replay.areas.pla.faults import PLA_CONSEQUENCES

_CLOSED = {
    "recorded": "pla: recorded only", "rejected": "pla: rejected", "expired": "pla: expired",
    "withdrawn": "pla: withdrawn",
}  # fmt: skip
_EXECUTED = {"done": "pla: typed", "aborted": "pla: aborted", "not_executed": "pla: not executed"}


def pla_consequences(history: Sequence[Event]) -> list[str]:
    """See the module."""
    masked = {
        event.data.execution_id for event in history
        if isinstance(event.data, PlaExecutionRequested) and event.data.masked
    }  # fmt: skip
    plain = [
        "pla: typed in plain what the log masks" for event in history
        if isinstance(event.data, PlaExecuted) and event.data.outcome == "done" and event.data.execution_id in masked
    ]  # fmt: skip
    return [*plain, *(one for event in history for one in _of(event) if one in PLA_CONSEQUENCES)]


def _of(event: Event) -> Iterator[str]:
    match event.data:
        case PlaExecuted(outcome=outcome, code=code):
            yield _EXECUTED[outcome]
            yield f"pla {outcome}: {code}"
        case HidOutcomeUnknown():
            yield "pla: outcome unknown"
        case HidTold(state="DONE" | "ABORTED"):
            yield "pla: recovered by asking"
        case PlaModeChanged(code=code):
            yield f"pla mode: {code}"
        case PlaDecisionRefused(code=code):
            yield f"pla decision refused: {code}"
        case PlaProposalRefused(code=code):
            yield f"pla proposal refused: {code}"
        case PlaProposalClosed(outcome=outcome) if outcome in _CLOSED:
            yield _CLOSED[outcome]
        case PlaViolation(kind=kind):
            yield f"pla violation: {kind}"
