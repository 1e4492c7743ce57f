"""L2: plans are given or asked for, and their tasks go to workers in order, as places are free."""

from __future__ import annotations

import json
from typing import Any

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
from tests.support.orchestra import RUN, Waits, Yard, config, exited, plan, replied

GOOD = json.dumps([{"task_id": "a", "intent": "x", "tools": ["ls"]}])


def assigned(yard: Yard) -> list[tuple[str, int]]:
    """The tasks given to workers, each with its place, in order."""
    return [(one.name, one.worker) for one in yard.of(TaskAssigned)]


def held(given: Waits | PlanText, **limits: Any) -> Yard:
    """A run whose attempts have no end yet."""
    yard = Yard()
    yard.tool = lambda _: None
    yard.request(given, config=config(**limits))
    return yard


def end(yard: Yard, name: str, code: int = 0) -> None:
    """Let the task's attempt end."""
    ids = {one.assignment.task_id: one.name for one in yard.of(TaskAssigned)}
    (event,) = (event for event in yard.open(TaskAttemptRequested) if ids[event.data.task_id] == name)
    yard.end(event, exited(event, code))


def steps(yard: Yard) -> list[list[str]]:
    """Each event's changes, as task and step."""
    names = {task.task_id: task.name for told in yard.of(TasksPlanned) for task in told.tasks}
    return [[f"{names[change.task_id]} {change.step}" for change in told.changes] for told in yard.of(TasksChanged)]


# --- scheduling ---------------------------------------------------------------------------------------------------


def test_ready_tasks_start_in_the_plans_order_while_places_are_free() -> None:
    yard = held({"c": [], "a": [], "b": [], "d": []}, workers=2)
    assert assigned(yard) == [("c", 1), ("a", 2)]
    end(yard, "a")
    assert assigned(yard)[2:] == [("b", 2)]
    end(yard, "c")
    assert assigned(yard)[3:] == [("d", 1)]


def test_a_task_that_needs_more_places_waits_until_they_are_free_and_nobody_overtakes_it() -> None:
    wide = {"constraints": {"concurrency": 2}}
    yard = held(plan({"a": [], "wide": [], "b": []}, wide=wide), workers=2)
    assert assigned(yard) == [("a", 1)]
    end(yard, "a")
    assert assigned(yard)[1:] == [("wide", 1)]
    end(yard, "wide")
    assert assigned(yard)[2:] == [("b", 1)]


def test_an_end_and_what_becomes_ready_by_it_and_starts_stand_in_one_event() -> None:
    yard = held({"a": [], "b": ["a"], "c": ["a", "b"]})
    assert steps(yard) == [["b block", "c block", "a start"]]
    end(yard, "a")
    assert steps(yard)[1:] == [["a succeed", "b unblock", "b start"]]
    end(yard, "b")
    assert steps(yard)[2:] == [["b succeed", "c unblock", "c start"]]


def test_a_task_is_told_what_it_follows() -> None:
    yard = held({"a": [], "b": [], "c": ["b", "a"]})
    end(yard, "b")
    end(yard, "a")
    results = {one.result.task_id: event.position for event, one in zip(
        yard.events(TaskFinished), yard.of(TaskFinished), strict=True
    )}
    first, second, last = yard.of(TaskAssigned)
    assert last.after == {"b": results[second.assignment.task_id], "a": results[first.assignment.task_id]}
    assert first.after == {}


def test_when_a_task_fails_its_dependents_fail_and_what_does_not_wait_for_it_goes_on() -> None:
    yard = held({"a": [], "b": ["a"], "c": ["b"], "e": []}, workers=1, retries=0)
    end(yard, "a", 3)
    assert steps(yard)[-1] == ["a fail", "b give_up", "c give_up", "e start"]
    end(yard, "e")
    (finished,) = yard.of(PlanFinished)
    assert (finished.done, finished.failed, finished.security) == (1, 3, False)
    (over,) = yard.of(RunEnded)
    assert (over.state, over.reasons) == ("failed", ["3 of 4 tasks failed"])


def test_many_tasks_are_told_in_as_many_events_as_they_need() -> None:
    files = {"inputs": {"files": [{"path": "f", "content": "x" * 300_000}]}}
    yard = held(plan({"a": [], "b": [], "c": ["a"]}, a=files, b=files, c=files))
    told = yard.of(TasksPlanned)
    assert [[task.name for task in one.tasks] for one in told] == [["a", "b"], ["c"]]
    assert yard.of(PlanMade)[0].tasks == 3


# --- the planner ----------------------------------------------------------------------------------------------------


def planning(**more: Any) -> Yard:
    """A run that needs the planner, whose call has no end yet."""
    yard = Yard()
    yard.request(None, **more)
    return yard


def call(yard: Yard) -> Event:
    """The call that is open."""
    (event,) = yard.open(PlannerCallRequested)
    return event


def test_a_planner_is_asked_under_a_permit_of_its_own() -> None:
    yard = planning()
    (asked,) = yard.of(OaPermitRequested)
    assert (asked.subject, asked.holder, asked.uses) == (f"planner:{RUN}", "coordinator", PLANNER_TRIES)
    yard.end(call(yard), replied(call(yard), GOOD))
    assert assigned(yard) == [("a", 1)]


@each(
    "answer", [GOOD, f"Here:\n```json\n{GOOD}\n```\nbye", f"Sure! {GOOD} That is all.", '{"tasks": ' + GOOD + "}"]
)
def test_a_plan_is_found_in_what_a_planner_says(answer: str) -> None:
    yard = planning()
    yard.end(call(yard), replied(call(yard), answer))
    assert assigned(yard) == [("a", 1)]


def test_an_answer_that_cannot_be_used_is_asked_for_again_with_what_was_wrong_three_times_in_all() -> None:
    yard = planning()
    for _ in range(PLANNER_TRIES - 1):
        yard.end(call(yard), replied(call(yard), "I will not"))
    last = call(yard)
    assert last.data.attempt == PLANNER_TRIES
    told = "could not be used: the planner's answer holds no JSON that can be read; ask again, or give a plan with"
    assert told in last.data.prompt
    yard.end(last, replied(last, '[{"task_id": "a", "intent": "x", "tools": ["bash"]}]'))
    refused = yard.over()
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
def test_a_planner_without_an_answer_is_asked_again_if_that_may_help(
    outcome: Any, calls: int, code: str, reason: str
) -> None:
    yard = planning()
    yard.planner = lambda event: outcome(event.position)
    while yard.step():
        pass
    refused = yard.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.reasons) == (code, [reason])
    assert refused.mend == [] if reason == "no" else refused.mend
    assert len(yard.of(PlannerCallRequested)) == calls


def failed(at: int, *, again: bool) -> PlannerFailed:
    """A call that fails."""
    return PlannerFailed(request=at, run_id=RUN, code="exited", text="no", mend="", again=again, duration_ms=1)


def test_a_call_that_was_cut_off_waits_for_a_start_that_takes_runs_up() -> None:
    yard = planning()
    yard.end(call(yard), EffectInterrupted(request=call(yard).position, reason="crash"))
    for surface, calls in (("oa.status", 0), ("daemon", 1)):
        yard.start(surface)
        yard.observe("NORMAL")
        assert len(yard.open(PlannerCallRequested)) == calls, surface
    assert call(yard).data.attempt == 2


def test_a_call_that_was_cut_off_is_one_of_those_that_may_be_made() -> None:
    yard = planning()
    for number in range(PLANNER_TRIES):
        assert call(yard).data.attempt == number + 1
        assert yard.over() is None
        yard.end(call(yard), EffectInterrupted(request=call(yard).position, reason="crash"))
        yard.start()
        yard.observe("NORMAL")
    refused = yard.over()
    assert isinstance(refused, RunRefused)
    assert (refused.code, refused.reasons) == ("no_plan", ["the planner was interrupted (crash)"])
    assert len(yard.of(PlannerCallRequested)) == PLANNER_TRIES


def test_a_run_that_is_cancelled_while_it_is_planned_ends_without_a_plan() -> None:
    yard = planning()
    asked = call(yard)
    yard.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    over = yard.over()
    assert isinstance(over, RunEnded)
    assert (over.state, over.done, over.failed) == ("cancelled", 0, 0)
    assert [one.code for one in yard.of(PlanFailed)] == ["stopped"]
    assert asked.position in yard.engine.effects.cancelled
    yard.end(asked, replied(asked, GOOD))
    assert yard.of(TaskAssigned) == []


def test_a_plan_for_what_failed_may_not_use_a_done_tasks_id_again() -> None:
    yard = Yard()
    yard.planner = lambda event: replied(event, GOOD)
    yard.tool = lambda event: exited(event, 3 if len(yard.of(TaskAttemptRequested)) > 1 else 0)
    yard.request({"a": [], "b": ["a"]}, replans=1, config=config(retries=0))
    over = yard.run()
    assert isinstance(over, RunEnded)
    assert over.state == "failed"
    assert over.reasons == ["there is no other plan", "the planner's answer: more than one task is called a"]
