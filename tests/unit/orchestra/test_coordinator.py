"""L2: plans are given or asked for, and their tasks go to workers in order, as places are free."""

from __future__ import annotations

import json
from typing import Any

from msgspec import UNSET

from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectTimedOut
from pmagent.contracts.oa import OaPermitRequested
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import (
    PLANNER_TRIES,
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    TaskAssigned,
    TaskAttemptRequested,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
)
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, Waits, config, exited, plan, replied

GOOD = json.dumps([{"task_id": "a", "intent": "x", "tools": ["ls"]}])


def assigned(harness: Harness) -> list[tuple[str, int]]:
    """The tasks given to workers, each with its place, in order."""
    return [(one.name, one.worker) for one in harness.of(TaskAssigned)]


def held(given: Waits | PlanText, **limits: Any) -> Harness:
    """A run whose attempts have no end yet."""
    harness = Harness()
    harness.tool = lambda _: None
    harness.request(given, config=config(**limits))
    return harness


def end(harness: Harness, name: str, code: int = 0) -> None:
    """Let the task's attempt end."""
    ids = {one.assignment.task_id: one.name for one in harness.of(TaskAssigned)}
    (event,) = (event for event in harness.open(TaskAttemptRequested) if ids[event.data.task_id] == name)
    harness.end(event, exited(event, code))


def steps(harness: Harness) -> list[list[str]]:
    """Each event's changes, as task and step."""
    names = {task.task_id: task.name for told in harness.of(TasksPlanned) for task in told.tasks}
    return [[f"{names[change.task_id]} {change.step}" for change in told.changes] for told in harness.of(TasksChanged)]


# --- scheduling ---------------------------------------------------------------------------------------------------


def test_ready_tasks_start_in_the_plans_order_while_places_are_free() -> None:
    harness = held({"c": [], "a": [], "b": [], "d": []}, workers=2)
    assert assigned(harness) == [("c", 1), ("a", 2)]
    end(harness, "a")
    assert assigned(harness)[2:] == [("b", 2)]
    end(harness, "c")
    assert assigned(harness)[3:] == [("d", 1)]


def test_a_task_that_needs_more_places_waits_until_they_are_free_and_nobody_overtakes_it() -> None:
    wide = {"constraints": {"concurrency": 2}}
    harness = held(plan({"a": [], "wide": [], "b": []}, wide=wide), workers=2)
    assert assigned(harness) == [("a", 1)]
    end(harness, "a")
    assert assigned(harness)[1:] == [("wide", 1)]
    end(harness, "wide")
    assert assigned(harness)[2:] == [("b", 1)]


def test_an_end_and_what_becomes_ready_by_it_and_starts_stand_in_one_event() -> None:
    harness = held({"a": [], "b": ["a"], "c": ["a", "b"]})
    assert steps(harness) == [["b block", "c block", "a start"]]
    end(harness, "a")
    assert steps(harness)[1:] == [["a succeed", "b unblock", "b start"]]
    end(harness, "b")
    assert steps(harness)[2:] == [["b succeed", "c unblock", "c start"]]


def test_a_task_is_told_what_it_follows() -> None:
    harness = held({"a": [], "b": [], "c": ["b", "a"]})
    end(harness, "b")
    end(harness, "a")
    results = {one.result.task_id: event.position for event, one in zip(
        harness.events(TaskFinished), harness.of(TaskFinished), strict=True
    )}
    first, second, last = harness.of(TaskAssigned)
    assert last.after == {"b": results[second.assignment.task_id], "a": results[first.assignment.task_id]}
    assert first.after == {}


def test_when_a_task_fails_its_dependents_fail_and_what_does_not_wait_for_it_goes_on() -> None:
    harness = held({"a": [], "b": ["a"], "c": ["b"], "e": []}, workers=1, retries=0)
    end(harness, "a", 3)
    assert steps(harness)[-1] == ["a fail", "b give_up", "c give_up", "e start"]
    end(harness, "e")
    (finished,) = harness.of(PlanFinished)
    assert (finished.done, finished.failed, finished.security) == (1, 3, False)
    (over,) = harness.of(RunEnded)
    assert (over.state, over.reasons) == ("failed", ["3 of 4 tasks failed"])


def test_many_tasks_are_told_in_as_many_events_as_they_need() -> None:
    files = {"inputs": {"files": [{"path": "f", "content": "x" * 300_000}]}}
    harness = held(plan({"a": [], "b": [], "c": ["a"]}, a=files, b=files, c=files))
    told = harness.of(TasksPlanned)
    assert [[task.name for task in one.tasks] for one in told] == [["a", "b"], ["c"]]
    assert harness.of(PlanMade)[0].tasks == 3


# --- the planner ----------------------------------------------------------------------------------------------------


def planning(**more: Any) -> Harness:
    """A run that needs the planner, whose call has no end yet."""
    harness = Harness()
    harness.request(None, **more)
    return harness


def call(harness: Harness) -> Event:
    """The call that is open."""
    (event,) = harness.open(PlannerCallRequested)
    return event


def test_a_planner_is_asked_under_a_permit_of_its_own() -> None:
    harness = planning()
    (asked,) = harness.of(OaPermitRequested)
    assert (asked.subject, asked.holder, asked.uses) == (f"planner:{RUN}", "coordinator", PLANNER_TRIES)
    harness.end(call(harness), replied(call(harness), GOOD))
    assert assigned(harness) == [("a", 1)]


@each("answer", [GOOD, f"Here:\n```json\n{GOOD}\n```\nbye", f"Sure! {GOOD} That is all.", '{"tasks": ' + GOOD + "}"])
def test_a_plan_is_found_in_what_a_planner_says(answer: str) -> None:
    harness = planning()
    harness.end(call(harness), replied(call(harness), answer))
    assert assigned(harness) == [("a", 1)]


@each("form", [UNSET, 2])
def test_a_long_argument_of_a_planner_is_judged_as_when_the_run_was_recorded(form: Any) -> None:
    long = json.dumps([{"task_id": "a", "intent": "x", "tools": ["ls"], "inputs": {"args": ["x" * 1_001]}}])
    harness = planning(form=form)
    harness.end(call(harness), replied(call(harness), long))
    if form == 2:
        assert assigned(harness) == [("a", 1)]
    else:
        assert "tasks[0].inputs.args[0]" in call(harness).data.prompt
        assert "at most 1000 characters" in call(harness).data.prompt


def test_an_answer_that_cannot_be_used_is_asked_for_again_with_what_was_wrong_three_times_in_all() -> None:
    harness = planning()
    for _ in range(PLANNER_TRIES - 1):
        harness.end(call(harness), replied(call(harness), "I will not"))
    last = call(harness)
    assert last.data.attempt == PLANNER_TRIES
    told = "could not be used: the planner's answer holds no JSON that can be read; ask again, or give a plan with"
    assert told in last.data.prompt
    harness.end(last, replied(last, '[{"task_id": "a", "intent": "x", "tools": ["bash"]}]'))
    refused = harness.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.security) == ("bad_plan", True)
    assert refused.reasons == ["the planner's answer: not in whitelist_tools: bash (a)"]


@each(
    "outcome, calls, code, reason",
    [
        (lambda at: EffectTimedOut(request=at, limit_s=5.0), 3, "no_plan", "the planner did not answer in 5 s"),
        (lambda at: EffectFailed(request=at, error="E", place="p"), 3, "no_plan",
         "the planner could not be asked (E in p)"),
        (lambda at: EffectCancelled(request=at, reason="permit_revoked"), 1, "no_plan",
         "asking the planner was stopped (permit_revoked)"),
        (lambda at: failed(at, again=True), 3, "no_plan", "no"),
        (lambda at: failed(at, again=False), 1, "no_plan", "no"),
    ],
)
def test_a_mute_planner_is_asked_again_if_that_may_help(outcome: Any, calls: int, code: str, reason: str) -> None:
    harness = planning()
    harness.planner = lambda event: outcome(event.position)
    while harness.step():
        pass
    refused = harness.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.reasons) == (code, [reason])
    assert refused.mend == [] if reason == "no" else refused.mend
    assert len(harness.of(PlannerCallRequested)) == calls


def failed(at: int, *, again: bool) -> PlannerFailed:
    """A call that fails."""
    return PlannerFailed(request=at, run_id=RUN, code="exited", text="no", mend="", again=again, duration_ms=1)


def test_a_call_that_was_cut_off_waits_for_a_start_that_takes_runs_up() -> None:
    harness = planning()
    harness.end(call(harness), EffectInterrupted(request=call(harness).position, reason="crash"))
    for surface, calls in (("oa.status", 0), ("daemon", 1)):
        harness.start(surface)
        harness.observe("NORMAL")
        assert len(harness.open(PlannerCallRequested)) == calls, surface
    assert call(harness).data.attempt == 2


def test_a_call_that_was_cut_off_is_one_of_those_that_may_be_made() -> None:
    harness = planning()
    for number in range(PLANNER_TRIES):
        assert call(harness).data.attempt == number + 1
        assert harness.over() is None
        harness.end(call(harness), EffectInterrupted(request=call(harness).position, reason="crash"))
        harness.start()
        harness.observe("NORMAL")
    refused = harness.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.reasons) == ("no_plan", ["the planner was interrupted (crash)"])
    assert len(harness.of(PlannerCallRequested)) == PLANNER_TRIES


def test_a_run_that_is_cancelled_while_it_is_planned_ends_without_a_plan() -> None:
    harness = planning()
    asked = call(harness)
    harness.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    over = harness.over()
    assert isinstance(over, RunEnded)
    assert (over.state, over.done, over.failed) == ("cancelled", 0, 0)
    assert [one.code for one in harness.of(PlanFailed)] == ["stopped"]
    assert asked.position in harness.engine.effects.cancelled
    harness.end(asked, replied(asked, GOOD))
    assert harness.of(TaskAssigned) == []


def test_a_plan_for_what_failed_may_not_use_a_done_tasks_id_again(harness: Harness) -> None:
    harness.planner = lambda event: replied(event, GOOD)
    harness.tool = lambda event: exited(event, 3 if len(harness.of(TaskAttemptRequested)) > 1 else 0)
    harness.request({"a": [], "b": ["a"]}, replans=1, config=config(retries=0))
    over = harness.run()
    assert isinstance(over, RunEnded)
    assert over.state == "failed"
    assert over.reasons == ["there is no other plan", "the planner's answer: more than one task is called a"]
