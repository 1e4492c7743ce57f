"""Fixtures of the OA's tests."""

from __future__ import annotations

import pytest

from pmagent.contracts.kernel import KernelReadRequested
from tests.support.oa_loop import STARTED, Contents, Loop, Observe
from tests.support.reasoning import RunBench


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def running(loop: Loop, green: Contents, observe: Observe) -> Loop:
    """A loop whose kernel was observed to be NORMAL."""
    loop.tell(STARTED)
    loop.tell(observe(green, request=loop.last(KernelReadRequested)))
    return loop


@pytest.fixture
def bench(observe: Observe, green: Contents) -> RunBench:
    """A bench for the reasoner, with a kernel in order, observed."""
    made = RunBench()
    made.observe(observe(green))
    return made
