"""Few checks run at once, and every request is answered once, whatever happens to runs, permits, mode and process."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.checks.actor import ATTEMPTS, CHECKER, Checker
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.kernel.surfaces import BOOTSTRAP, PATHS
from pmagent.actors.oa.actor import Oa
from pmagent.contracts.checks import AT_ONCE, CheckAnswered, CheckRequested, CheckRunRequested
from pmagent.contracts.effect import EffectFailed, EffectInterrupted, EffectRefused, EffectTimedOut
from pmagent.events.event import Event
from tests.conftest import EXAMPLE, observed
from tests.support.checking import CheckBench, ran, unstarted
from tests.support.effort import examples
from tests.support.oa_loop import STARTED
from tests.support.toys import refolded

steps = st.lists(
    st.tuples(
        st.sampled_from((
            "ask", "ask", "pass", "pass", "pass", "fail", "unstarted", "broken", "timed out", "crash", "stop", "block",
            "mend", "settle", "start", "read",
        )),
        st.integers(0, 50),
    ),
    min_size=5, max_size=60,
)


GREEN = {name: json.loads((EXAMPLE / path).read_text()) for name, path in PATHS.items()}
BROKEN = {name: content for name, content in GREEN.items() if name != BOOTSTRAP}
NAMES = ("a", "b", "c", "d", "e", "f", "g")


def step(bench: CheckBench, what: str, n: int) -> None:
    """One thing that may happen; ``n`` says to whom."""
    match what:
        case "ask":
            bench.ask(*NAMES[: 1 + n % len(NAMES)], kind="guard" if n % 3 else "check")
        case "block":
            bench.look(observed(copy.deepcopy(BROKEN)))
        case "mend":
            bench.look(observed(copy.deepcopy(GREEN)))
        case "settle":
            bench.settle()
        case "start":
            bench.fact(STARTED)
        case "read":
            read(bench)
        case _ if bench.runs:
            run = bench.runs[n % len(bench.runs)]
            bench.end(run, end(what, run, n))


def read(bench: CheckBench) -> None:
    """The readings that are under way come to their end."""
    for event in list(bench.engine.effects.open.values()):
        if event.type == "kernel.read_requested":
            bench.finish(event.position, observed(copy.deepcopy(GREEN), request=event.position))


def end(what: str, run: Event, n: int) -> Any:
    """How the run ends."""
    at = run.position
    match what:
        case "unstarted":
            return unstarted(run)
        case "broken":
            return EffectFailed(request=at, error="ToyError", place="toy")
        case "timed out":
            return EffectTimedOut(request=at, limit_s=1.0)
        case "crash" | "stop":
            return EffectInterrupted(request=at, reason=what)
    return ran(run, n if what == "fail" else 0)


def check(bench: CheckBench) -> None:
    """The laws that hold at any time."""
    assert len(bench.runs) <= AT_ONCE
    assert not bench.engine.halted
    state = bench.engine.states[CHECKER]
    assert state.active <= AT_ONCE
    queued = any(item.doing == "queued" for _, item in state.each())
    assert not queued or state.active == AT_ONCE, "no place stays empty"


@given(steps)
@settings(max_examples=examples(200), deadline=None)
def test_every_request_is_answered_once_and_no_more_than_four_run(steps: list[tuple[str, int]]) -> None:
    bench = CheckBench()
    for what, n in steps:
        step(bench, what, n)
        check(bench)
    while bench.runs or not bench.idle:  # in the end everything comes to its end
        read(bench)
        bench.settle()
        bench.pass_all()
        check(bench)
    refused = {event.data.request for event in bench.of(EffectRefused)}
    for request in bench.of(CheckRequested):
        (answer,) = bench.answers(request.position)
        names = [one.name for one in request.data.checks]
        assert answer.error or [one.name for one in answer.results] == names
        for name in names:
            attempts = [
                run for run in bench.of(CheckRunRequested)
                if run.data.request == request.position and run.data.name == name
            ]
            assert len({run.data.attempt for run in attempts}) == len(attempts) <= ATTEMPTS
            begun = [run for run in attempts if run.position not in refused]
            passed = [one.passed for one in answer.results if one.name == name]
            assert not any(passed) or begun, "what passed has been run"
    answered = [event.data.request for event in bench.of(CheckAnswered)]
    assert len(set(answered)) == len(answered)


@given(steps, st.integers(0, 400))
@settings(max_examples=examples(60), deadline=None)
def test_wherever_the_history_is_cut_it_goes_on_as_it_did(steps: list[tuple[str, int]], cut: int) -> None:
    bench = CheckBench()
    for what, n in steps:
        step(bench, what, n)
    history = bench.history[: 1 + cut % max(1, len(bench.history))]
    if not history:
        return
    engine = refolded([KernelWatcher(), Oa(), Checker()], history)
    completed = engine.complete(history[-1].time).events
    following = bench.history[len(history) : len(history) + len(completed)]
    assert [(one.position, one.raw) for one in completed] == [(one.position, one.raw) for one in following]
