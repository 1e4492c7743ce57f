"""The consequences of one fact fit into the engine's bounds, whatever contracts allow, and no run stays open."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pmagent.actors.oa.actor import Oa
from pmagent.actors.orchestra.running.coordinator import Coordinator
from pmagent.actors.orchestra.running.orchestrator import RUNS_MAX, STOPS_MAX, WORKERS_MAX, Orchestrator
from pmagent.actors.orchestra.running.worker import Worker
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectInterrupted, EffectRefused, RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra_config import BACKOFF_SECONDS_MAX
from pmagent.contracts.orchestra_config import WORKERS_MAX as WORKERS_OF_ONE
from pmagent.contracts.orchestra_events import (
    REASON_CHARS_MAX,
    SOURCE_CHARS_MAX,
    PlannerCallRequested,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskFinished,
    TasksChanged,
)
from pmagent.events.event import DATA_BYTES_MAX
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, config, exited, plan, replied

OTHER = "5b0c7a52-3f7e-4c1d-9a55-000000000002"
MANY = 3_000


def fall(*_: Any) -> Any:
    raise LookupError


def many(count: int = MANY) -> dict[str, list[str]]:
    """So many tasks that wait for nothing."""
    return {f"t{number}": [] for number in range(count)}


def held(harness: Harness, reason: str = "crash") -> None:
    """All attempts are cut off."""
    for event in harness.open(TaskAttemptRequested):
        harness.end(event, EffectInterrupted(request=event.position, reason=reason))


def ended(harness: Harness, run_id: str = RUN) -> RunEnded:
    """How the run ended, when nobody was halted on the way."""
    assert harness.of(ActorHalted) == []
    over = harness.over(run_id)
    assert isinstance(over, RunEnded)
    return over


# --- sizes ----------------------------------------------------------------------------------------------------------


@each("char", ["x", "\x01", "\U0001f600"])
def test_a_long_plan_is_cancelled_with_the_longest_reason(char: str) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many())
    harness.tell(RunCancelRequested(run_id=RUN, reason=char * REASON_CHARS_MAX))
    held(harness)
    end = ended(harness)
    assert (end.state, end.failed) == ("cancelled", MANY)
    assert end.reasons == [char * REASON_CHARS_MAX], "the run has all of it"
    sizes = [len(event.raw) for event in harness.events(TasksChanged)]
    assert max(sizes) < DATA_BYTES_MAX
    assert sum(sizes) < 1000 * 4 * MANY, "each task has its beginning"


def test_the_longest_name_of_a_plan_stands_in_what_is_wrong_with_it(harness: Harness) -> None:
    where = "\x01" * SOURCE_CHARS_MAX
    harness.request(plan({"a": [], "b": []}, a={"tools": ["bash"]}), source=where)
    assert harness.of(ActorHalted) == []
    over = harness.over()
    assert isinstance(over, RunRefused)
    assert (over.code, over.reasons) == ("bad_plan", [f"{where}: not in whitelist_tools: bash (a)"])


# --- how much follows from one fact -----------------------------------------------------------------------------------


def test_a_run_whose_time_and_permit_were_over_before_a_start_is_out_of_time_at_the_first_refusal() -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many(), config=config(total=60))
    harness.seconds += 1_000
    held(harness)
    harness.start()
    end = ended(harness)
    assert (end.state, end.reasons) == ("timed_out", ["the run's time of 60 s is over"])
    assert len(harness.of(TaskAttemptRequested)) == 8, "four that were cut off, and were asked for once more"


def test_a_run_is_stopped_when_the_one_who_gave_its_permit_is_halted(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many())
    with monkeypatch.context() as patch:
        patch.setattr(Oa, "decide", fall)
        harness.observe("DEGRADED")
    harness.tool = exited
    assert harness.step()
    (stopping,) = harness.of(RunStopping)
    assert stopping.cause == "stopped"
    assert stopping.reasons[0].startswith("an attempt was not permitted: there is no live permit ")
    assert len(harness.of(EffectRefused)) == 1
    held(harness, "stop")
    assert isinstance(harness.over(), RunEnded)
    assert [halted.name for halted in harness.of(ActorHalted)] == ["oa"]


def test_a_refused_attempt_ends_its_task_and_the_run_once_and_what_runs_beside_it_is_stopped(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request(many(3), config=config(total=60, workers=2))
    harness.seconds += 1_000
    (first, second) = harness.open(TaskAttemptRequested)
    harness.end(first, exited(first))  # the next one is asked for, after the permit
    assert harness.engine.effects.cancelled == {second.position: "cancel_requested"}
    harness.end(second, EffectInterrupted(request=second.position, reason="stop"))
    end = ended(harness)
    assert (end.state, end.done, end.failed) == ("timed_out", 1, 2)
    assert Counter(one.result.state for one in harness.of(TaskFinished)) == {"done": 1, "failed": 2}


def full_house() -> tuple[Harness, list[str]]:
    """As many runs as there is room for, of as many workers as may be; all their tasks have failed once, and wait."""
    harness = Harness()
    harness.tool = lambda _: None
    given = many(WORKERS_OF_ONE)
    runs: list[str] = []
    while True:
        run_id = f"5b0c7a52-3f7e-4c1d-9a55-1{len(runs):011x}"
        harness.request(given, run_id, config=config(workers=WORKERS_OF_ONE, base=BACKOFF_SECONDS_MAX))
        if harness.of(RunRefused):
            return harness, runs
        runs.append(run_id)


def test_so_many_workers_may_be_open_that_all_of_them_can_be_stopped_at_once() -> None:
    harness, runs = full_house()
    (refused,) = harness.of(RunRefused)
    assert (refused.code, len(runs)) == ("busy", WORKERS_MAX // WORKERS_OF_ONE)
    for event in harness.open(TaskAttemptRequested):
        harness.end(event, exited(event, 1))
    assert {job.doing for job in harness.engine.states["worker"].jobs.values()} == {"pause"}
    harness.observe("BLOCKED")
    assert [ended(harness, run_id).state for run_id in runs] == ["stopped"] * len(runs)


def test_so_many_workers_may_be_open_that_all_of_them_can_be_refused_at_once() -> None:
    harness, runs = full_house()
    held(harness)
    harness.seconds += 86_400.0
    harness.start()
    assert [ended(harness, run_id).state for run_id in runs] == ["timed_out"] * len(runs)
    assert len(harness.of(EffectRefused)) == WORKERS_MAX


# --- the planner ----------------------------------------------------------------------------------------------------


def interrupted_planner(pause: float) -> Harness:
    """A run whose planner's call is cut off, and repeated ``pause`` seconds later."""
    harness = Harness()
    harness.planner = lambda _: None
    harness.request(None, config=config(total=86_400))
    (call,) = harness.open(PlannerCallRequested)
    harness.end(call, EffectInterrupted(request=call.position, reason="crash"))
    harness.seconds += pause
    harness.start()
    harness.observe("NORMAL")
    return harness


def test_a_planners_call_is_made_again_however_late_within_the_runs_time() -> None:
    harness = interrupted_planner(86_000.0)
    harness.planner = lambda event: replied(event, '[{"task_id": "a", "intent": "x", "tools": ["ls"]}]')
    over = harness.run()
    assert isinstance(over, RunEnded)
    assert over.state == "done"


def test_a_planners_call_that_comes_too_late_ends_its_run_out_of_time() -> None:
    harness = interrupted_planner(90_000.0)
    end = ended(harness)
    assert (end.state, end.reasons) == ("timed_out", ["the run's time of 86400 s is over"])


# --- orderly stops --------------------------------------------------------------------------------------------------


def test_however_often_its_daemon_is_stopped_a_task_is_tried_again(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request(many(1), config=config(retries=0))
    for _ in range(STOPS_MAX):
        held(harness, "stop")
        harness.start()
    harness.tool = exited
    assert harness.step()
    assert ended(harness).state == "done"
    assert len(harness.of(TaskAttemptFailed)) == STOPS_MAX


# --- permits end with their run -------------------------------------------------------------------------------------


def test_the_permits_of_a_run_are_taken_back_when_it_is_over(harness: Harness) -> None:
    harness.request(many(2))
    assert isinstance(harness.run(), RunEnded)
    (granted,) = harness.events(OaPermitGranted)
    assert harness.of(OaPermitRevoked) == [OaPermitRevoked(permit=granted.position, reason="its run is over")]
    assert harness.events(OaPermitRevoked)[0].correlation == RUN
    assert harness.engine.states["gate"].permits == {}
    assert harness.engine.states["oa"].permits == {}


def test_the_permits_of_other_runs_stay(harness: Harness) -> None:
    harness.tool = lambda event: exited(event) if event.data.run_id == OTHER else None
    harness.request(many(1))
    harness.request(many(1), OTHER)
    assert isinstance(harness.run(OTHER), RunEnded)
    assert [permit.subject for permit in harness.engine.states["gate"].permits.values()] == [f"run:{RUN}"]


def test_what_runs_while_the_worker_is_halted_is_stopped_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many(2))
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "decide", fall)
        harness.tell(RunCancelRequested(run_id=RUN))
    assert isinstance(harness.over(), RunEnded)
    cancelled = harness.engine.effects.cancelled
    assert [cancelled.get(event.position) for event in harness.open(TaskAttemptRequested)] == ["permit_revoked"] * 2


# --- who is halted --------------------------------------------------------------------------------------------------


@each("actors", [[Coordinator], [Worker], [Coordinator, Worker], [Worker, Coordinator]])
def test_a_run_that_is_asked_for_while_helpers_are_halted_never_begins(
    actors: list[type[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many(1))
    with monkeypatch.context() as patch:
        for actor in actors:
            patch.setattr(actor, "decide", fall)
            harness.tell(RunStopping(run_id=RUN, cause="stopped", reasons=[], mend=[]))  # both hear it
    names = [actor.name for actor in actors]
    assert [halted.name for halted in harness.of(ActorHalted)] == names
    harness.request(many(1), OTHER)
    asked = harness.events(RunRequested)[-1].position
    answers: list[RunRefused | RequestRefused] = [*harness.of(RunRefused), *harness.of(RequestRefused)]
    refusals = [one for one in answers if one.request == asked]
    assert len(refusals) == 1, "one end, whoever says it"
    assert any(name in str(refusals[0]) for name in names)
    assert harness.engine.states["orchestrator"].runs == {}
    assert harness.engine.states["coordinator"].runs == {}
    assert [event for event in harness.open(TimerRequested) if event.correlation == OTHER] == []
    for name in names:
        harness.tell(ActorResumed(name=name))
    harness.tool = exited
    third = "5b0c7a52-3f7e-4c1d-9a55-000000000003"
    harness.request(many(1), third)
    over = harness.run(third)
    assert isinstance(over, RunEnded)
    assert over.state == "done"


def test_a_request_that_the_engine_refuses_leaves_nothing_with_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    with monkeypatch.context() as patch:
        patch.setattr(Orchestrator, "decide", fall)
        harness.request(many(1))
    assert harness.of(RequestRefused)
    assert harness.engine.states["coordinator"].runs == {}


def test_runs_that_were_open_while_both_were_halted_end_when_one_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many(1))
    with monkeypatch.context() as patch:
        patch.setattr(Orchestrator, "decide", fall)
        harness.tell(RunCancelRequested(run_id=OTHER))
        patch.setattr(Coordinator, "decide", fall)
        (attempt,) = harness.open(TaskAttemptRequested)
        harness.end(attempt, exited(attempt))
    assert {halted.name for halted in harness.of(ActorHalted)} == {"orchestrator", "coordinator"}
    harness.tell(ActorResumed(name="orchestrator"))
    over = harness.over()
    assert isinstance(over, RunEnded)
    assert (over.state, over.reasons) == ("failed", ["the coordinator is halted"])


def test_a_stop_that_a_halted_helper_missed_is_said_again_when_it_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(many(1))
    with monkeypatch.context() as patch:
        patch.setattr(Orchestrator, "decide", fall)
        patch.setattr(Worker, "decide", fall)
        harness.tell(RunCancelRequested(run_id=OTHER))
        harness.tell(RunCancelRequested(run_id=RUN))
    harness.tell(ActorResumed(name="orchestrator"))
    harness.tell(ActorResumed(name="worker"))
    held(harness, "stop")
    assert harness.engine.states["orchestrator"].runs == {}
    assert len(harness.of(RunEnded)) == 1


def test_as_many_runs_as_there_may_be_have_room_for_the_workers_that_runs_have_by_themselves() -> None:
    assert RUNS_MAX * config().concurrency.max_workers <= WORKERS_MAX


def test_a_request_whose_source_is_longer_than_any_path_is_none(harness: Harness) -> None:
    with pytest.raises(Exception, match="length"):
        harness.request(many(1), source="s" * (SOURCE_CHARS_MAX + 1))
    assert harness.of(RunRequested) == []
