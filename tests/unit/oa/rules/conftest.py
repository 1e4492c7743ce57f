"""One desk a program, at a healthy kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.rules_desk import Desk


@pytest.fixture
def safeops() -> Desk:
    return Desk("SafeOPSDecision")


@pytest.fixture
def transition() -> Desk:
    return Desk("PhaseTransitionValidator", "Go from phase 7 to phase 8")


@pytest.fixture
def generator() -> Desk:
    return Desk("OPSBlockGenerator", "Rebuild the documents")


@pytest.fixture
def interpreter() -> Desk:
    return Desk("GuardFailureInterpreter", "Why did it fail?")


@pytest.fixture
def desk() -> Callable[..., Desk]:
    return Desk
