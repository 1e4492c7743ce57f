"""The simulation notices when a guest's call passes that must not: faults of our own around approvals and ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pmagent.actors.guests import actor, answers
from pmagent.actors.guests.actor import Guests
from pmagent.actors.guests.state import GuestsState
from tests.simulation.test_seeds_guests import GUESTS
from tests.support.planted import by_day, plant_all
from tests.support.simulated import failure

PLANTED: dict[str, tuple[str, list[tuple[Any, str, str, str]]]] = {
    # what the failure says, and where what is exchanged for what
    "an approval is for any call of its session": ("another call through|another call than", [
        (GuestsState, "usable", "one.digest == asked.digest and ", ""),
    ]),
    "an approval is for any agent": ("another call through", [
        (GuestsState, "usable", " and one.agent == asked.facts.agent", ""),
    ]),
    "an approval is used again": ("is over", [
        (actor, "_used", "approvals=without(state.approvals, number)", "approvals=state.approvals"),
    ]),
    "approvals never expire": ("wait for ever", [(actor, "_expired", "approval.expires > now", "True")]),
    "one operator counts as two": ("counts twice", [
        (answers, "_refusal", "wish.operator_id in approval.operators", "False"),
    ]),
    "an agent approves its own call": ("or the asker", [(answers, "_refusal", "if wish.asking:", "if False:")]),
    "an approval of another call counts": ("another call", [
        (answers, "_refusal", "wish.digest != approval.digest", "False"),
    ]),
    "who waits in vain waits for ever": ("wait for ever", [
        (Guests, "decide", "yield from _waited_in_vain(state, why, data.call_asked)", "pass"),
        (Guests, "decide", 'yield from _waited_in_vain(state, "the daemon ended while it waited")', "pass"),
    ]),
    "an end that nobody let through ends a call that waits": ("cannot be", [
        (actor, "_on_end", " and not call.waits", ""),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, GUESTS))
