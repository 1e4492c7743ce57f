"""The simulation notices when the stop switch does not stop: faults of our own around it, each found."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pmagent.actors.core import gate
from pmagent.actors.core.gate import Gate
from pmagent.actors.core.ledger import EffectLedger
from pmagent.actors.core.scheduler import Scheduler
from pmagent.actors.pla.warden import actor as warden
from pmagent.actors.pla.warden import modes
from pmagent.replay.simulation import machine
from pmagent.replay.simulation.runner import Load
from tests.support.planted import by_day, plant_all
from tests.support.simulated import PAUSES, TYPINGS_PAUSED, failure

PLANTED: dict[str, tuple[str, Load, list[tuple[Any, str, str, str]]]] = {
    # what the failure says, in which world, and where what is exchanged for what
    "the ledger forgets what is held": ("was only held|has no end|were held", PAUSES, [
        (EffectLedger, "book", "self.paused and isinstance(data, OutwardRequest)", "False"),
    ]),
    "a pause holds nothing": ("started though effects are paused|is cut off, and was only held", PAUSES, [
        (Scheduler, "_start", "(self._unread or self._shut)", "self._unread"),
    ]),
    "a start takes up what is held": (
        "was only held", PAUSES, [
            (EffectLedger, "unfinished", "if at not in self.cancelled", "if False"),
        ],
    ),
    "a snapshot forgets the pause": ("from a snapshot differs|though effects are paused", PAUSES, [
        (machine, "restore_engine", "engine.effects.paused = state.paused", "pass"),
    ]),
    "a snapshot forgets what is held": ("from a snapshot differs|though effects are paused|has no end", PAUSES, [
        (machine, "restore_engine", "for position in state.held}", "for position in ()}"),
    ]),
    "anybody resumes": ("started though effects are paused|is cut off, and was only held", PAUSES, [
        (EffectLedger, "book", "event.actor == GATE and type(data) in _PAUSING", "type(data) in _PAUSING"),
        (Scheduler, "durable", "and event.actor == GATE ", ""),
    ]),
    "what was held starts in another order": ("started after", PAUSES, [
        (Scheduler, "_let_go", 'key=attrgetter("event.position"))', 'key=attrgetter("event.position"), reverse=True)'),
    ]),
    "what was held is forgotten": ("has no end|still open|has 0 answers", PAUSES, [
        (Scheduler, "_let_go", "for life in held:", "for life in held[:0]:"),
    ]),
    "a permit that expired in a pause counts": ("though their permits have expired|was let through: expired", PAUSES, [
        (gate, "_resumed", "event.time >= held.expires_at", "False"),
    ]),
    "who waits for what is refused after a pause does not hear of it": ("who it belongs to does not hear", PAUSES, [
        (gate, "_resumed", "if held.correlation", "if False"),
    ]),
    "what ended in a pause is refused after it": (
        "refused that has ended|has 2 ends|it was not held|start, [0-9]+ were held", PAUSES, [
            (gate, "_fact", "event.causation in state.held", "False"),
        ],
    ),
    "a second pause takes the first one's place": ("since", PAUSES, [
        (gate, "_own", "if state.pause is not None:", "if False:"),
        (Gate, "decide", "state.pause.since if state.pause is not None else event.position", "event.position"),
    ]),
    "an order is let through in a pause": ("was let through: .*paused|though effects are paused", TYPINGS_PAUSED, [
        (gate, "_use", "state.pause is not None and not request.waits", "False"),
    ]),
    "the mode stands in a pause": ("effects were paused at [0-9]+, and the mode is", TYPINGS_PAUSED, [
        (warden, "_from_others", "reason=reason) if event.actor == GATE:", "reason=reason) if False:"),
    ]),
    "the mode is raised in a pause": ("effects are paused", TYPINGS_PAUSED, [
        (modes, "_objections", "if state.paused_by:", "if False:"),
    ]),
}


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, load, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, load))
