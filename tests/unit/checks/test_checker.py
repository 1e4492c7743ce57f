"""The checker: what is run, when, how often, and that every request gets one answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from pmagent.actors.checks.actor import ATTEMPTS, CHECKER, OPEN_MAX, Checker
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.gate import Gate
from pmagent.actors.core.snapshot import export_engine
from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.kernel.surfaces import BOOTSTRAP, HANDOFF
from pmagent.actors.oa.actor import Oa
from pmagent.contracts.checks import AT_ONCE, CheckAnswered, CheckRunRequested
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectCancelRequested,
    EffectFailed,
    EffectInterrupted,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested, OaPermitRevoked
from pmagent.events.event import DATA_BYTES_MAX, Event
from tests.support.checking import CheckBench, ran, unstarted
from tests.support.oa_loop import STARTED, Contents, Observe
from tests.support.toys import Poked, refolded, reread


@pytest.fixture
def bench(green: Contents, observe: Observe) -> CheckBench:
    """A live engine whose kernel is NORMAL."""
    bench = CheckBench()
    bench.start(observe(green))
    return bench


def test_a_check_gets_a_permit_of_its_own_and_is_then_run(bench: CheckBench) -> None:
    request = bench.ask("tests", seconds=7.0)
    (granted,) = bench.of(OaPermitGranted)
    assert (granted.data.action, granted.data.subject, granted.data.holder) == ("diagnostic", "check:tests", CHECKER)
    assert granted.data.uses == 1
    (run,) = bench.runs
    assert run.data == CheckRunRequested(
        permit=granted.position, request=request, kind="check", name="tests", argv=["run-tests", "-v"], seconds=7.0,
        attempt=1,
    )
    assert run.correlation == bench.history[request - 1].correlation
    assert not bench.answers(request)
    bench.end(run, ran(run, stdout="all is well\n"))
    (result,) = bench.results(request).values()
    assert (result.passed, result.ran, result.exit_code, result.message) == (True, True, 0, "exit code 0")
    assert result.end == bench.of(type(ran(run)))[-1].position
    assert bench.idle


def test_a_guard_is_permitted_as_a_guard(bench: CheckBench) -> None:
    bench.ask("links", kind="guard")
    assert [run.data.scope().subject for run in bench.runs] == ["guard:links"]


def test_results_stand_in_the_order_of_the_request_whatever_order_runs_end_in(bench: CheckBench) -> None:
    request = bench.ask("a", "b", "c")
    for name in ("c", "a", "b"):
        bench.end(bench.run_of(name), ran(bench.run_of(name), 0 if name == "b" else 3))
    assert [(one.name, one.passed) for one in bench.results(request).values()] == [
        ("a", False), ("b", True), ("c", False),
    ]


@pytest.mark.parametrize(("more", "said"), [
    ({"exit_code": 2, "stderr": "one\nno such file"}, "exit code 2: no such file"),
    ({"exit_code": 1, "stdout": "1 failed\n\n"}, "exit code 1: 1 failed"),
    ({"exit_code": None, "signal": 9}, "ended by signal 9"),
    ({"exit_code": 0, "timed_out": True}, "it took longer than 60 s, and was ended"),
    ({"exit_code": 0, "exceeded": "it filled its /tmp"}, "it was ended: it filled its /tmp"),
])
def test_only_an_end_of_its_own_with_exit_code_0_is_a_pass(bench: CheckBench, more: Any, said: str) -> None:
    request = bench.ask("a")
    (run,) = bench.runs
    bench.end(run, ran(run, **more))
    (result,) = bench.results(request).values()
    assert (result.passed, result.ran, result.message) == (False, True, said)


def ends(run: int) -> list[msgspec.Struct]:
    """Every way in which a run ends that says nothing about the check, and is not tried again."""
    return [
        EffectFailed(request=run, error="OSError", place="pmagent.actors.checks.effects:run_check"),
        EffectTimedOut(request=run, limit_s=660.0),
        EffectInterrupted(request=run, reason="stop"),
    ]


@pytest.mark.parametrize("way", range(3))
def test_a_check_that_came_to_no_end_of_its_own_has_not_passed(bench: CheckBench, way: int) -> None:
    request = bench.ask("a")
    (run,) = bench.runs
    bench.end(run, ends(run.position)[way])
    (result,) = bench.results(request).values()
    assert (result.passed, result.ran) == (False, False)
    assert result.message.startswith("it could not be run: ")
    assert result.mend
    assert not bench.runs
    assert bench.finish(run.position, ran(run)) is None, "it has ended already"


def test_a_program_that_is_missing_is_told_with_what_mends_it(bench: CheckBench) -> None:
    request = bench.ask("a")
    (run,) = bench.runs
    bench.end(run, unstarted(run))
    (result,) = bench.results(request).values()
    assert (result.passed, result.ran) == (False, False)
    assert (result.message, result.mend) == ("it could not be run: there is no program", "install it")


def test_four_run_at_once_and_the_next_begins_when_one_has_ended(bench: CheckBench) -> None:
    names = [f"c{n}" for n in range(AT_ONCE + 2)]
    request = bench.ask(*names)
    assert [run.data.name for run in bench.runs] == names[:AT_ONCE]
    bench.end(bench.runs[1], ran(bench.runs[1]))
    assert [run.data.name for run in bench.runs] == ["c0", "c2", "c3", "c4"]
    bench.pass_all()
    assert list(bench.results(request)) == names


def test_requests_share_the_places_and_keep_their_own_runs(bench: CheckBench) -> None:
    first = bench.ask("a", "b", "c")
    second = bench.ask("a", "z")
    assert [(run.data.request, run.data.name) for run in bench.runs] == [
        (first, "a"), (first, "b"), (first, "c"), (second, "a"),
    ]
    bench.end(bench.runs[0], ran(bench.runs[0]))
    assert bench.runs[-1].data.name == "z"
    assert bench.runs[-1].correlation == bench.history[second - 1].correlation
    bench.pass_all()
    for request in (first, second):
        (answer,) = (event for event in bench.of(CheckAnswered) if event.data.request == request)
        assert answer.correlation == bench.history[request - 1].correlation
    assert bench.idle


def test_a_request_beyond_the_bound_is_answered_at_once(bench: CheckBench) -> None:
    open_requests = [bench.ask("a") for _ in range(OPEN_MAX)]
    over = bench.ask("a")
    (answer,) = bench.answers(over)
    assert "too many" in answer.error
    assert not answer.results
    bench.pass_all()
    assert all(len(bench.answers(request)) == 1 for request in open_requests)


def test_checks_of_one_name_are_not_run(bench: CheckBench) -> None:
    request = bench.ask("a", "b", "a")
    (answer,) = bench.answers(request)
    assert "same name" in answer.error
    assert not bench.of(CheckRunRequested)
    assert bench.idle


def test_the_results_of_as_many_checks_as_there_may_be_fit_into_a_line(bench: CheckBench) -> None:
    wide = "\U0001f600"
    request = bench.ask(*(wide * 96 + f"{n:03}" for n in range(100)))
    while bench.runs:
        run = bench.runs[0]
        bench.end(run, ran(run, 1, stdout=wide * 9000, stderr=wide * 9000, unenforced=[wide * 900] * 9))
    assert len(bench.results(request)) == 100
    assert max(len(event.raw) for event in bench.history if event.kind == "decision") < DATA_BYTES_MAX
    assert not bench.engine.halted


# -- permits --------------------------------------------------------------------------------------------------------


def broken(green: Contents) -> Contents:
    """Surfaces with which the kernel is BLOCKED."""
    return {name: content for name, content in green.items() if name != BOOTSTRAP}


@pytest.mark.parametrize("mode", ["DEGRADED", "BLOCKED"])
def test_checks_run_in_every_mode(green: Contents, observe: Observe, mode: str) -> None:
    bench = CheckBench()
    bench.start(observe(green | {HANDOFF: green[HANDOFF] | {"mode": mode}}))
    request = bench.ask("a")
    bench.pass_all()
    assert bench.results(request)["a"].passed


def test_before_the_surfaces_have_been_read_nothing_is_run(green: Contents, observe: Observe) -> None:
    bench = CheckBench()
    request = bench.ask("a")
    assert isinstance(bench.of(OaPermitRefused)[0].data, OaPermitRefused)
    (result,) = bench.results(request).values()
    assert (result.ran, "has not been observed" in result.message) == (False, True)
    assert not bench.of(CheckRunRequested)
    bench.fact(STARTED)
    waiting = bench.ask("a")  # a reading is under way by now
    assert not bench.answers(waiting)
    bench.finish(bench.history[-3].position, observe(green))
    bench.pass_all()
    assert bench.results(waiting)["a"].passed


def test_work_that_a_worse_mode_cuts_off_is_run_again(bench: CheckBench, green: Contents, observe: Observe) -> None:
    request = bench.ask("a")
    (first,) = bench.runs
    bench.look(observe(broken(green)))
    assert [event.data.permit for event in bench.of(OaPermitRevoked)] == [first.data.permit]
    bench.settle()
    (second,) = bench.runs
    assert (second.data.attempt, second.data.permit == first.data.permit) == (2, False)
    bench.end(second, ran(second))
    assert bench.results(request)["a"].passed


def test_a_kernel_blocked_on_its_first_reading_does_not_keep_checks_back(green: Contents, observe: Observe) -> None:
    """The reading that grants the permit may be the one that takes every permit back."""
    bench = CheckBench()
    bench.start(observe(green))
    bench.fact(STARTED)
    request = bench.ask("a")
    bench.finish(bench.history[-3].position, observe(broken(green)))
    assert bench.of(OaPermitRevoked)
    bench.settle()
    bench.pass_all()
    assert bench.results(request)["a"].passed


@pytest.mark.parametrize("reason", ["crash", "stop"])
def test_after_a_crash_a_check_is_run_again_and_after_a_stop_it_is_not(bench: CheckBench, reason: str) -> None:
    request = bench.ask("a")
    (run,) = bench.runs
    bench.end(run, EffectInterrupted(request=run.position, reason=reason))
    assert len(bench.runs) == (reason == "crash")
    assert len(bench.answers(request)) == (reason == "stop")


def test_nothing_is_tried_for_ever(bench: CheckBench) -> None:
    request = bench.ask("a")
    for attempt in range(ATTEMPTS):
        (run,) = bench.runs
        assert run.data.attempt == attempt + 1
        bench.end(run, EffectCancelled(request=run.position, reason="permit_revoked"))
    (result,) = bench.results(request).values()
    assert (result.ran, "permit_revoked" in result.message) == (False, True)
    assert bench.idle


# -- halted actors --------------------------------------------------------------------------------------------------


class BrokenOa(Oa):
    """An OA that cannot decide on the facts that are called so, or on any request for a permit of ``fails_on``."""

    fails_on = "check:bad"

    def decide(self, state: Any, event: Event) -> Any:
        if event.id == "breaks it" or getattr(event.data, "subject", "") == self.fails_on:
            raise LookupError
        return super().decide(state, event)


def test_while_the_oa_is_halted_checks_are_answered_as_not_run(green: Contents, observe: Observe) -> None:
    bench = CheckBench([KernelWatcher(), BrokenOa()])
    bench.start(observe(green))
    request = bench.ask("a", "bad", "c", "d", "e", "f")
    assert [event.data.name for event in bench.of(ActorHalted)] == ["oa"]
    bench.settle()
    results = bench.results(request)
    assert not any(one.ran for one in results.values()), "a permit is worth nothing without who granted it"
    assert all("oa is halted" in one.message.lower() for one in results.values())
    later = bench.ask("g")
    assert not bench.results(later)["g"].ran
    assert bench.idle


def test_a_permit_that_the_oa_will_never_decide_on_is_not_waited_for(green: Contents, observe: Observe) -> None:
    bench = CheckBench([KernelWatcher(), BrokenOa()])
    bench.fact(STARTED)
    request = bench.ask("a", "b")  # they wait for the first reading
    assert not bench.answers(request)
    bench.fact(observe(green), id="breaks it")
    assert [event.data.name for event in bench.of(ActorHalted)] == ["oa"]
    assert not any(one.ran for one in bench.results(request).values())
    assert bench.idle


def test_without_a_gate_nothing_is_run(green: Contents, observe: Observe, monkeypatch: pytest.MonkeyPatch) -> None:
    evolve = Gate.evolve

    def breaks(self: Gate, state: Any, event: Event) -> Any:
        if isinstance(event.data, CheckRunRequested):
            raise LookupError
        return evolve(self, state, event)

    monkeypatch.setattr(Gate, "evolve", breaks)
    bench = CheckBench()
    bench.start(observe(green))
    request = bench.ask("a")
    assert [event.data.name for event in bench.of(ActorHalted)] == ["gate"]
    assert "the gate is halted" in bench.results(request)["a"].message
    assert not bench.runs


class Fragile(Checker):
    """A checker that cannot decide on a poke."""

    hears = Checker.hears | {Poked}

    def decide(self, state: Any, event: Event) -> Any:
        if isinstance(event.data, Poked):
            raise LookupError
        return super().decide(state, event)


@pytest.fixture
def halted(green: Contents, observe: Observe) -> tuple[CheckBench, int]:
    """A bench whose checker is halted while four checks of one request run, and one waits; and the request."""
    bench = FragileBench([KernelWatcher(), Oa()])
    bench.start(observe(green))
    request = bench.ask("a", "b", "c", "d", "e")
    bench.fact(Poked(n=1))
    return bench, request


class FragileBench(CheckBench):
    """With a fragile checker."""

    def __init__(self, actors: Iterable[AnyActor]) -> None:
        super().__init__(actors)
        actors = [*(one for one in self.actors if one.name != CHECKER), Fragile()]
        super(CheckBench, self).__init__(actors)


def test_a_request_to_a_halted_checker_is_refused_by_the_engine(halted: tuple[CheckBench, int]) -> None:
    bench, _ = halted
    over = bench.ask("x")
    assert [event.data.request for event in bench.of(RequestRefused)] == [over]
    assert over not in bench.engine.states["checker"].open


def test_a_resumed_checker_answers_what_it_knows_and_takes_back_the_rest(halted: tuple[CheckBench, int]) -> None:
    bench, request = halted
    bench.end(bench.run_of("b"), ran(bench.run_of("b")))
    running = [run.position for run in bench.runs]
    assert not bench.answers(request)
    bench.fact(ActorResumed(name=CHECKER))
    assert [event.data.request for event in bench.of(EffectCancelRequested)] == running
    results = bench.results(request)
    assert [(one.name, one.passed, one.ran) for one in results.values()] == [
        ("a", False, False), ("b", True, True), ("c", False, False), ("d", False, False), ("e", False, False),
    ]
    assert bench.idle
    bench.settle()
    assert len(bench.answers(request)) == 1


# -- the log --------------------------------------------------------------------------------------------------------


def test_wherever_the_process_dies_the_same_is_decided_from_what_the_log_holds(
    bench: CheckBench, green: Contents, observe: Observe
) -> None:
    bench.ask("a", "b", "c", "d", "e", "f")
    bench.end(bench.run_of("b"), ran(bench.run_of("b"), 1, stderr="no"))
    bench.look(observe(broken(green)))
    bench.settle()
    bench.end(bench.run_of("e"), unstarted(bench.run_of("e")))
    bench.pass_all()
    actors: list[AnyActor] = [KernelWatcher(), Oa(), Checker()]
    for cut in range(1, len(bench.history) + 1):
        engine = refolded(actors, bench.history[:cut])
        completed = engine.complete(bench.history[cut - 1].time).events
        following = bench.history[cut : cut + len(completed)]
        assert [(one.position, one.type, one.raw) for one in completed] == [
            (one.position, one.type, one.raw) for one in following
        ]
    again = refolded(actors, bench.history)
    again.complete(bench.now)
    assert export_engine(again).states == export_engine(bench.engine).states


def test_what_has_been_decided_reads_back_as_it_is(bench: CheckBench) -> None:
    bench.ask("a")
    bench.pass_all()
    assert all(reread(event).data == event.data for event in bench.history)
    assert [event.type for event in bench.history if event.actor == CHECKER] == [
        "oa.permit_requested", "check.run_requested", "check.answered",
    ]
    assert bench.of(OaPermitRequested)[0].data.seconds == 60.0
