"""Threads that are given up: what fails in one is told where it failed."""

from __future__ import annotations

import pytest

from pmagent.actors.core.integrity import describe_failure
from pmagent.oa.abandon import AbandoningExecutor


def failing() -> None:
    raise RuntimeError


def test_the_place_of_a_failure_is_never_the_thread_that_it_ran_in() -> None:
    future = AbandoningExecutor().submit(failing)
    with pytest.raises(RuntimeError) as caught:
        future.result(timeout=60)
    error, place = describe_failure(caught.value)
    assert error == "RuntimeError"
    assert "pmagent.oa.abandon" not in place


def test_what_is_called_answers_from_a_thread_that_nobody_waits_for() -> None:
    executor = AbandoningExecutor()
    assert executor.submit(sum, [1, 2]).result(timeout=60) == 3
    executor.shutdown()
