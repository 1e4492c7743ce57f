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
    outcomes: dict[str, str] = {}
    for event in history:
        if event.kind != "decision" or event.actor != "hid":
            continue
        if isinstance(event.data, PlaExecuted):
            outcomes[event.data.execution_id] = event.data.outcome
        elif isinstance(event.data, HidOutcomeUnknown):
            outcomes[event.data.execution_id] = "unknown"
    for name, outcome in outcomes.items():
        output = typed.get(name)
        if outcome == "done":
            require(output is not None and output.whole, f"{name} is told to be done, and was not typed")
        elif outcome == "not_executed":
            require(output is None or output.nothing, f"{name} is told not to be executed, and was typed")
    for name, output in typed.items():
        require(output.nothing or name in outcomes, f"{name} was typed, and the log has no word of it")
