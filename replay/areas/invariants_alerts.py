"""The laws of acknowledgements, computed from the events themselves. They hold for any prefix of a history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from pmagent.contracts.alerts import AlertAcknowledged, AlertAcknowledgeRefused, AlertAcknowledgeRequested
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require


def check_alerts(history: Sequence[Event]) -> None:
    """Only what happened is acknowledged, once, by a named person with a note, and the acknowledgements are chained and
    counted. Raises Violation."""
    asked: dict[int, AlertAcknowledgeRequested] = {}
    answered: set[int] = set()
    done: set[int] = set()
    numbers, newest = count(1), 0
    for event in history:
        data = event.data
        if isinstance(data, AlertAcknowledgeRequested) and event.kind == "fact":
            asked[event.position] = data
        elif isinstance(data, AlertAcknowledged | AlertAcknowledgeRefused):
            require(data.request in asked and data.request not in answered, f"{event.id} answers no request, or again")
            answered.add(data.request)
        if isinstance(data, AlertAcknowledged):
            wish = asked[data.request]
            require(data.alert == wish.alert < data.request, f"{event.id} acknowledges what was not asked for")
            require(data.first <= data.alert and data.alert not in done, f"{data.alert} is acknowledged twice")
            require(bool(data.operator_id) and data.operator_id == wish.operator_id, f"{event.id} is in another's name")
            require(bool(data.note.strip()) and data.note == wish.note, f"{event.id} has no note, or another")
            require((data.number, data.previous) == (next(numbers), newest), f"{event.id} breaks the chain")
            done.add(data.alert)
            newest = event.position
