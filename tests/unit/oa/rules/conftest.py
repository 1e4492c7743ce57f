"""A run of each program, at a healthy kernel."""

from __future__ import annotations

import pytest

from tests.support.rules_runs import RulesRun


@pytest.fixture
def safeops() -> RulesRun:
    return RulesRun("SafeOPSDecision")


@pytest.fixture
def transition() -> RulesRun:
    return RulesRun("PhaseTransitionValidator", "Go from phase 7 to phase 8")


@pytest.fixture
def generator() -> RulesRun:
    return RulesRun("OPSBlockGenerator", "Rebuild the documents")


@pytest.fixture
def interpreter() -> RulesRun:
    return RulesRun("GuardFailureInterpreter", "Why did it fail?")
