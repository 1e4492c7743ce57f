"""L1: each request for a run has one end, and whatever ends it early goes through its stop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pmagent.actors.oa.actor import Oa
from pmagent.actors.orchestra.running.coordinator import Coordinator
from pmagent.actors.orchestra.running.orchestrator import DAY_SECONDS, GRACE_SECONDS, RUNS_MAX, STOPS_MAX, Orchestrator
from pmagent.actors.orchestra.running.worker import WORKER, Worker
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectCancelled, EffectCancelRequested
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested
from pmagent.contracts.orchestra_events import (
    PlannerCallRequested,
    PlanRequested,
    RunBegun,
    RunCancelAnswered,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAttemptRequested,
)
from pmagent.events.event import parse_time
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, config, exited, plan, replied

OTHER = "5b0c7a52-3f7e-4c1d-9a55-000000000002"


def stopped(harness: Harness) -> None:
    """End what is cancelled, as the runtime does."""
    for event in harness.open(TaskAttemptRequested):
        if (reason := harness.engine.effects.cancelled.get(event.position)) is not None:
            harness.end(event, EffectCancelled(request=event.position, reason=reason))


def test_a_run_is_planned_permitted_begun_and_ended_and_its_timer_taken_back(harness: Harness) -> None:
    harness.request({"a": [], "b": ["a"]})
    end = harness.run()
    (asked,) = harness.events(RunRequested)
    assert end == RunEnded(
        request=asked.position, run_id=RUN, state="done", reasons=[], mend=[], done=2, failed=0, security=False
    )
    (timer,) = (event for event in harness.events(TimerRequested) if event.actor == "orchestrator")
    assert [one.request for one in harness.of(EffectCancelRequested)] == [timer.position]
    own = [event for event in harness.history if event.actor in ("orchestrator", "coordinator", "worker")]
    assert {event.correlation for event in own} == {RUN}


def test_the_permit_is_for_the_run_lasts_as_long_as_it_and_has_uses_for_all_attempts(harness: Harness) -> None:
    harness.request({"a": [], "b": []}, config=config(total=50, retries=1), action="remediation")
    (asked,) = harness.of(OaPermitRequested)
    assert (asked.action, asked.subject, asked.holder) == ("remediation", f"run:{RUN}", WORKER)
    assert asked.uses == 2 * 2 + 2 * STOPS_MAX
    assert asked.seconds == pytest.approx(50 + GRACE_SECONDS)
    (begun,) = harness.of(RunBegun)
    (grant,) = harness.events(OaPermitGranted)
    assert begun.permit == grant.position


def test_a_permit_lasts_a_day_at_most(harness: Harness) -> None:
    harness.request({"a": []}, config=config(total=86_400))
    assert harness.of(OaPermitRequested)[0].seconds == DAY_SECONDS


def test_what_is_to_be_planned_only_asks_for_no_permit_and_ends() -> None:
    harness = Harness("BLOCKED")
    harness.request({"a": []}, plan_only=True)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, end.done, end.failed) == ("planned", 0, 0)
    assert harness.of(OaPermitRequested) == []


@each("mode, action, reason", [
    ("NORMAL", "unheard_of", "unknown action"),
    ("DEGRADED", "feature_work", "feature_work is forbidden in DEGRADED"),
    ("BLOCKED", "remediation", "remediation is forbidden in BLOCKED"),
])
def test_a_run_that_the_mode_forbids_is_refused_and_nothing_is_attempted(mode: str, action: str, reason: str) -> None:
    harness = Harness(mode)
    harness.request({"a": []}, action=action)
    end = harness.over()
    assert isinstance(end, RunRefused)
    assert (end.code, end.reasons[0], bool(end.mend)) == ("not_permitted", reason, True)
    assert harness.of(TaskAttemptRequested) == []
    assert harness.engine.states["orchestrator"].runs == {}


def test_a_plan_that_cannot_be_run_is_refused_with_its_code_and_its_timer_taken_back(harness: Harness) -> None:
    harness.request(plan({"a": []}, a={"tools": ["bash"]}))
    end = harness.over()
    assert isinstance(end, RunRefused)
    assert (end.code, end.security, end.reasons) == ("bad_plan", True, ["the plan: not in whitelist_tools: bash (a)"])
    assert len(harness.of(EffectCancelRequested)) == 1


def test_an_id_is_known_while_its_run_is_open_and_can_be_used_again_after_it(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []})
    (request,) = harness.of(RunRequested)
    harness.tell(request, "second", RUN)
    refused = harness.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.request) == ("known", harness.events(RunRequested)[1].position)
    harness.tool = exited
    while harness.step():
        pass
    assert [end.state for end in harness.of(RunEnded)] == ["done"]
    harness.tell(request, "third", RUN)
    while harness.step():
        pass
    assert [end.state for end in harness.of(RunEnded)] == ["done", "done"]


def test_more_runs_than_there_is_room_for_are_refused(harness: Harness) -> None:
    for number in range(RUNS_MAX):
        harness.request({"a": []}, f"5b0c7a52-3f7e-4c1d-9a55-1{number:011x}")
    assert harness.of(RunRefused) == []
    harness.request({"a": []}, OTHER)
    (refused,) = harness.of(RunRefused)
    assert (refused.code, refused.reasons) == ("busy", [f"{RUNS_MAX} runs are open"])


# --- early ends ---------------------------------------------------------------------------------------------------


def waiting_run(**more: Any) -> Harness:
    """A run whose first task is attempted and whose second waits for it."""
    harness = Harness()
    harness.tool = lambda _: None
    harness.request({"a": [], "b": ["a"]}, **more)
    return harness


def test_a_cancelled_run_ends_so_when_its_attempts_have_ended() -> None:
    harness = waiting_run()
    harness.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    assert [one.accepted for one in harness.of(RunCancelAnswered)] == [True]
    assert harness.of(RunStopping)[0].reasons == ["enough"]
    assert harness.over() is None, "an attempt is waited for"
    stopped(harness)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, end.reasons, end.done, end.failed) == ("cancelled", ["enough"], 0, 2)


def test_cancelling_is_answered_as_what_it_leads_to() -> None:
    harness = waiting_run()
    harness.tell(RunCancelRequested(run_id=OTHER))
    harness.tell(RunCancelRequested(run_id=RUN))
    harness.tell(RunCancelRequested(run_id=RUN))
    answers = [(one.accepted, one.text) for one in harness.of(RunCancelAnswered)]
    assert answers == [(False, "no such run is open"), (True, ""), (False, "it is ending already")]
    assert len(harness.of(RunStopping)) == 1


def test_a_run_whose_time_is_over_times_out() -> None:
    harness = waiting_run(config=config(total=3))
    assert harness.wake()
    stopped(harness)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, end.reasons) == ("timed_out", ["the run's time of 3 s is over"])
    begun, ended = harness.history[0], harness.events(RunEnded)[0]
    assert (parse_time(ended.time) - parse_time(begun.time)).total_seconds() == pytest.approx(3, abs=0.1)


def test_a_run_whose_permit_is_taken_back_is_stopped_and_says_why() -> None:
    harness = waiting_run()
    harness.observe("BLOCKED")
    stopped(harness)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, end.reasons) == ("stopped", ["the OA took the permit back: mode BLOCKED"])
    assert "pmagent status" in end.mend[0]


def test_what_has_stopped_a_run_is_not_told_again() -> None:
    harness = waiting_run(config=config(total=3))
    harness.tell(RunCancelRequested(run_id=RUN))
    harness.observe("BLOCKED")
    harness.wake()
    stopped(harness)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, len(harness.of(RunStopping))) == ("cancelled", 1)


# --- replans ------------------------------------------------------------------------------------------------------


def second_fails(harness: Harness) -> None:
    """The second attempt of all fails."""
    harness.tool = lambda event: exited(event, 3 if harness.events(TaskAttemptRequested).index(event) == 1 else 0)


def second_plan(event: Any) -> Any:
    """A planner that replaces what failed by one task which follows a done one."""
    return replied(event, '[{"task_id": "instead", "intent": "x", "tools": ["ls"], "depends_on": ["a"]}]')


def test_a_failed_part_is_planned_anew_with_what_is_done_kept(harness: Harness) -> None:
    harness.planner = second_plan
    harness.request({"a": [], "b": ["a"]}, replans=1, config=config(retries=0))
    second_fails(harness)
    end = harness.run()
    assert isinstance(end, RunEnded)
    assert (end.state, end.done, end.failed) == ("done", 2, 0)
    assert [one.revision for one in harness.of(PlanRequested)] == [0, 1]
    facts = harness.of(PlannerCallRequested)[0].prompt.partition("<facts>")[2].partition("</facts>")[0]
    told = json.loads(facts)
    assert [one["task_id"] for one in told["done"]] == ["a"]
    assert told["failed"] == [{"task_id": "b", "why": "exit code 3"}]


def test_where_no_other_plan_is_made_the_run_ends_with_what_its_last_one_came_to(harness: Harness) -> None:
    harness.planner = lambda event: replied(event, "I cannot")
    harness.request({"a": [], "b": ["a"]}, replans=1, config=config(retries=0))
    second_fails(harness)
    end = harness.run()
    assert isinstance(end, RunEnded)
    assert (end.state, end.done, end.failed) == ("failed", 1, 1)
    assert end.reasons[0] == "there is no other plan"


def test_nothing_is_planned_anew_after_a_violation(harness: Harness) -> None:
    harness.tool = lambda event: exited(event, 0, violations=["left its walls"])
    harness.request({"a": []}, replans=3)
    end = harness.run()
    assert isinstance(end, RunEnded)
    assert (end.state, end.security, len(harness.of(PlanRequested))) == ("failed", True, 1)


# --- who is halted --------------------------------------------------------------------------------------------------


def fall(*_: Any) -> Any:
    """In place of an actor's decisions."""
    raise LookupError


@pytest.mark.parametrize("actor", [Coordinator, Worker])
def test_a_run_ends_when_who_plans_or_works_is_halted(actor: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    harness = waiting_run()
    monkeypatch.setattr(actor, "decide", fall)
    harness.tell(RunCancelRequested(run_id=RUN))
    (halted,) = harness.of(ActorHalted)
    end = harness.over()
    assert isinstance(end, RunEnded)
    assert (end.state, end.reasons) == ("failed", [f"the {halted.name} is halted"])
    assert harness.engine.states["worker"].jobs == {}


@each("name, stops", [("coordinator", 1), ("worker", 1), ("orchestrator", 1), ("reasoner", 0)])
def test_a_run_is_stopped_when_who_carries_it_out_decides_again(name: str, stops: int) -> None:
    """Nobody knows what such an actor missed while it was halted; others missed nothing of the run."""
    harness = waiting_run()
    harness.tell(ActorResumed(name=name))
    assert len(harness.of(RunStopping)) == stops


@each("given", [{"a": []}, None])
def test_a_run_is_refused_when_nobody_can_permit_it(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    monkeypatch.setattr(Oa, "decide", fall)
    harness.request(given)
    refused = harness.over()
    assert isinstance(refused, RunRefused)
    assert refused.code == "not_permitted"
    assert "oa is halted" in refused.reasons[-1]
    assert harness.engine.states["orchestrator"].runs == harness.engine.states["coordinator"].runs == {}


def test_a_request_while_the_orchestrator_is_halted_is_refused_by_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    with monkeypatch.context() as patch:
        patch.setattr(Orchestrator, "decide", fall)
        harness.request({"a": []})
    assert [event.type for event in harness.history[-2:]] == ["actor.halted", "request.refused"]
    harness.tell(ActorResumed(name="orchestrator"))
    harness.request({"a": []}, OTHER)
    end = harness.run(OTHER)
    assert isinstance(end, RunEnded)
    assert end.state == "done"
