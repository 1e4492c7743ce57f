"""The simulation notices when the checker does what it must not: faults of our own, each found."""

from __future__ import annotations

import re

import pytest

from pmagent.actors.checks import actor as checker
from pmagent.actors.checks import state
from pmagent.actors.checks.actor import Checker
from tests.support.planted import Planted, by_day, plant_all
from tests.support.simulated import CHECKS, failure

NEXT = "return [*_answers(state), *(_next(state) if isinstance(event.data, CheckRequested) else ())]"

PLANTED: Planted = {
    "five run at once": ("5 checks run at once", [
        (checker, "_next", "places = AT_ONCE - state.active", "places = AT_ONCE + 1 - state.active"),
    ]),
    "a check is tried for ever": ("it is attempt 4", [
        (checker, "_over", "and item.attempts < ATTEMPTS", ""),
    ]),
    "a check that took too long passes": ("told to have passed", [
        (checker, "of_run", "not (ran.timed_out or ran.exceeded)", "not ran.exceeded"),
    ]),
    "a check that was ended at a limit passes": ("told to have passed", [
        (checker, "of_run", "not (ran.timed_out or ran.exceeded)", "not ran.timed_out"),
    ]),
    "what was not run is told to have run": ("told to have run", [
        (checker, "not_run", "ran=False", "ran=True"),
    ]),
    "a request is answered before everything has been run": ("of other checks|has been answered|answers", [
        (checker, "_answers", "if one.done", "if one.results"),
    ]),
    "an end counts for whatever runs": ("told to have|of other checks|runs already|answers|it is attempt", [
        (checker, "_over", "found = state.waiting(position)", "found = next(state.each(), None)"),
        (state, "ended", "item.at == position and ", ""),
    ]),
    "a permit is asked for in another request's name": ("another request|answers|runs already|attempt|halted", [
        (checker, "_next", "yield Correlated(asked, one.correlation)", "yield asked"),
    ]),
    "names that stand twice are run": ("something else was asked for", [
        (checker, "_objection", "if len(set(names)) < len(names):", "if False:"),
    ]),
    "what a crash cut off is waited for": ("has 0 answers|are open though", [
        (state, "queued_again", 'replace(item, doing="queued", at=0)', "item"),
    ]),
    "what waits in the queue is forgotten": ("has 0 answers|are open though", [
        (Checker, "decide", "return [*_answers(state), *_next(state)]", NEXT),
    ]),
}


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, CHECKS))
