"""Fixtures of the tests of the OA's tools, guards and requests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes the surfaces but the test: no need to wait for quiet."""
    monkeypatch.setattr("pmagent.actors.kernel.reader.QUIET_S", 0.0)
    monkeypatch.setattr("pmagent.actors.kernel.reader.WAIT_S", 0.0)
