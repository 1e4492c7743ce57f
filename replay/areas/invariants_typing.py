"""Compares the typing of a device with the log (docs/design.md §16.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.pla_events import PlaExecuted
from pmagent.events.event import Event
from pmagent.replay.areas.pla.strokes import Typed
from pmagent.replay.simulation.world import require


def check_typing(history: Sequence[Event], typed: Mapping[str, Typed]) -> None:
    """Done means all of it, not executed means nothing, and nothing was typed that the log does not tell of. Raises
    Violation."""
    told: dict[str, str] = {}
    for event in history:
        if event.kind != "decision" or event.actor != "hid":
            continue
        if isinstance(event.data, PlaExecuted):
            told[event.data.execution_id] = event.data.outcome
        elif isinstance(event.data, HidOutcomeUnknown):
            told[event.data.execution_id] = "unknown"
    for name, outcome in told.items():
        came_out = typed.get(name)
        if outcome == "done":
            require(came_out is not None and came_out.whole, f"{name} is told to be done, and was not typed")
        elif outcome == "not_executed":
            require(came_out is None or came_out.nothing, f"{name} is told not to be executed, and was typed")
    for name, came_out in typed.items():
        require(came_out.nothing or name in told, f"{name} was typed, and the log has no word of it")
