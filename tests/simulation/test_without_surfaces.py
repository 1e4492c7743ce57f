"""Simulated workspaces that are set to have no surfaces, and have some: their absence is a loss."""

from __future__ import annotations

import pytest

from pmagent.actors.kernel.mode import Expected
from pmagent.replay.simulation.machine import Machine
from tests.support.planted import plant
from tests.support.simulated import failure


def test_the_laws_hold_where_no_surfaces_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "kernel_surfaces", "none")
    assert failure(count=3) == ""


def test_a_loss_of_surfaces_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Machine, "kernel_surfaces", "none")
    plant(monkeypatch, Expected, "after", "return Expected(self.none, held=True)", "return self")
    assert "lost are not missed" in failure(count=20)
