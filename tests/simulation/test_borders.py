"""The simulation meets the faults at the engine's borders, and notices when what must follow from them does not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pmagent.actors.core.engine import Engine
from pmagent.actors.core.ledger import EffectLedger
from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.replay.simulation import runner
from pmagent.replay.simulation.borders import BORDER_CHANCES, BORDER_CONSEQUENCES, Borders
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.runner import Load, run_seeds
from tests.support.planted import Planted, plant_all

LOAD = Load(demands=20, thoughts=2, runs=4, checks=1, audits=1, changes=6)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seed has them, and each strikes often."""
    monkeypatch.setattr(runner, "BORDERED", 1.0)
    init = Borders.__init__

    def frequent(self: Borders, *arguments: Any) -> None:
        init(self, *arguments)
        if arguments[1] is None:
            self.faults.chances = {name: min(1.0, 3 * chance) for name, chance in BORDER_CHANCES.items()}

    monkeypatch.setattr(Borders, "__init__", frequent)


def seeds(count: int) -> tuple[Counter[str], str]:
    """The faults that were met, and the message of the first seed that fails; "" when none does."""
    done = run_seeds(1, count, documents=lambda: Documents(all_projections()), failures_max=1, load=LOAD)
    return Counter(done.struck), next(iter(done.failures), "")


def test_each_fault_is_met_and_what_must_follow_follows() -> None:
    struck, failure = seeds(12)
    assert failure == ""
    assert {*BORDER_CHANCES, *BORDER_CONSEQUENCES} <= {name for name, count in struck.items() if count}


PLANTED: Planted = {
    "an engine that was cut off goes on": ("does not know that it was cut off|takes a fact|follow", [
        (Engine, "accept", "self._cause = described(error)", "self._whole = True"),
    ]),
    "an engine breaks of itself": ("nothing had cut it off", [
        (Engine, "_verify", "    if position +",
         "    if position > 40:\n        raise EngineBroken('')\n    if position +"),
    ]),
    "a stop writes what nobody handed over": ("something else than was handed over", [
        (Machine, "_submit", "self.submitted = output.events[-1].position if output.events else ", "self.submitted = "),
    ]),
    "any fact ends an effect": ("ended with a", [
        (Engine, "accept", "ended is not None and not may_end(ended.data, draft.data)", "False"),
        (EffectLedger, "book", "(may_end(request.data, data) or type(data) is Unknown)", "True"),
        (Borders, "draft", "fact_of(event, payload)", "fact_of(event, event.data)"),
    ]),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    _, failure = seeds(30)
    assert any(word in failure for word in says.split("|")), failure
