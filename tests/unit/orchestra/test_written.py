"""Plans as people write them: matrices, shared variables, folders, conditions, tasks that may fail."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.conditions import BadCondition, holds
from pmagent.actors.orchestra.planning.graph import BadPlan, DuplicateTask
from pmagent.actors.orchestra.planning.plan import assignment, make_plan, read_plan
from pmagent.contracts.orchestra import PlanText, TaskOptions
from pmagent.contracts.orchestra_events import (
    PlanFinished,
    RunEnded,
    TaskAssigned,
    TaskAttemptRequested,
    TaskChange,
    TasksChanged,
    TasksPlanned,
)
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, config, exited


def task(name: str, *waits: str, **more: Any) -> dict[str, Any]:
    return {"task_id": name, "intent": "x", "tools": ["echo"], "depends_on": list(waits), **more}


def read(*tasks: dict[str, Any], **more: Any) -> tuple[PlanText, dict[str, TaskOptions]]:
    plan, options = read_plan(msgspec.json.encode({"tasks": list(tasks), **more}))
    make_plan(plan, config(), RUN, options=options)
    return plan, options


def test_a_matrix_is_a_task_for_each_combination_and_others_wait_for_all_of_them() -> None:
    plan, _ = read(
        task("t", matrix={"py": ["3.11", "3.12"], "os": ["a", "b c"]},
             inputs={"args": ["${{ matrix.py }}-${{matrix.os}}", "${{ other }}"]}),
        task("end", "t", inputs={"args": ["${{ matrix.py }}"]}),
    )
    assert [one.task_id for one in plan.tasks] == ["t-3.11-a", "t-3.11-b_c", "t-3.12-a", "t-3.12-b_c", "end"]
    assert plan.tasks[1].inputs.args == ["3.11-b c", "${{ other }}"]
    assert plan.tasks[-1].depends_on == [one.task_id for one in plan.tasks[:-1]]
    assert plan.tasks[-1].inputs.args == ["${{ matrix.py }}"], "without a matrix texts stay as they are"


def test_the_nearest_variable_wins_and_folders_and_conditions_are_options_beside_the_plan() -> None:
    plan, options = read(
        task("a", env={"B": "task", "C": "task"}, inputs={"env": {"C": "inputs"}}, cwd="src/${{ x }}"),
        task("b", matrix={"v": ["1", "it's"]}, cwd="d/${{ matrix.v }}", **{"if": "${{ matrix.v == '1' || always() }}"}),
        task("c", continue_on_error=True), env={"A": "plan", "B": "plan"},
    )
    assert plan.tasks[0].inputs.env == {"A": "plan", "B": "task", "C": "inputs"}
    assert options == {
        "a": TaskOptions(cwd="src/${{ x }}"),
        "b-1": TaskOptions(cwd="d/1", condition="'1' == '1' || always()"),
        "b-it_s": TaskOptions(cwd="d/it's", condition="'it''s' == '1' || always()"),
        "c": TaskOptions(continue_on_error=True),
    }
    made = make_plan(plan, config(), RUN, options=options)
    assert [assignment(one).cwd or "" for one in made.tasks] == ["src/${{ x }}", "d/1", "d/it's", ""]


def test_a_plan_without_any_of_it_is_recorded_as_before() -> None:
    plan, options = read(task("a"), task("b", "a"))
    assert options == {}
    made = make_plan(plan, config(), RUN).tasks[0]
    assert "options" not in msgspec.to_builtins(made)
    assert "cwd" not in msgspec.to_builtins(assignment(made))


@each(
    "tasks, kind, said",
    [
        ([task("t", matrix={"v": ["a", "a"]})], DuplicateTask, "t-a"),
        ([task("t", matrix={"include": ["a"]})], BadPlan, "include"),
        ([task("t", matrix={"v": [3.11]})], BadPlan, "matrix.v[0] is 3.11"),
        ([task("t", matrix={"v": []})], BadPlan, "an empty list"),
        ([task("t", matrix={f"v{n}": ["a", "b"] for n in range(8)}), task("u", matrix={"v": ["x" * 64]})],
         BadPlan, "task called u-x"),
        ([task("t", matrix={"a": ["x"] * 17, "b": ["x"] * 17})], BadPlan, "289 combinations"),
        ([task("t", matrix={"v": ["a"]}, inputs={"args": ["${{ matrix.w }}"]})], BadPlan, "matrix.w"),
        ([task("t", **{"if": "matrix.v == 'a'"})], BadPlan, "matrix.v"),
        ([task("t", matrix={"v": ["a", "b"]}), task("u", parent_id="t")], BadPlan, "parent_id"),
        ([task("t", cwd="../x")], BadPlan, "cwd"),
        ([task("t", cwd="/x")], BadPlan, "cwd"),
        ([task("t", **{"if": "success() &&"})], BadPlan, "if"),
        ([task("t", **{"if": "cancelled()"})], BadPlan, "cancelled"),
        ([task("t", iff="success()")], BadPlan, "iff"),
        ([task("t", env={"PATH": "x"})], BadPlan, "PATH"),
        ([task("t", matrix={"v": [".."]}, cwd="a/${{ matrix.v }}/b")], BadPlan, "cwd"),
    ],
)
def test_what_cannot_be_is_refused_by_its_place(tasks: list[dict[str, Any]], kind: type[BadPlan], said: str) -> None:
    with pytest.raises(kind) as refused:
        read(*tasks)
    assert said in refused.value.message


@each(
    "text, success, failure, found",
    [
        ("success()", True, False, True), ("success()", False, True, False), ("failure()", False, True, True),
        ("always()", False, True, True), ("!failure()", True, False, True), ("'a' == 'a'", True, False, True),
        ("'a' == 'a'", False, True, False), ("always() && 'a' != 'b'", False, False, True),
        ("failure() || 'it''s' == 'it''s'", False, False, True), ("!(success() || failure())", False, False, True),
        ("${{ always() && 'x' == 'y' || success() }}", True, False, True),
    ],
)
def test_a_condition_means_what_it_says(text: str, success: bool, failure: bool, found: bool) -> None:
    assert holds(text, success=success, failure=failure) is found


@given(st.text(alphabet="()!&|='a success failure always${}", max_size=40))
def test_any_other_text_is_refused_and_nothing_is_evaluated(text: str) -> None:
    with suppress(BadCondition):
        assert holds(text, success=True, failure=False) in (True, False)


@given(st.recursive(
    st.sampled_from([("success()", True), ("failure()", False), ("always()", True), ("'a' == 'a'", True)]),
    lambda inner: st.one_of(
        inner.map(lambda one: (f"!({one[0]})", not one[1])),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]} && {two[1][0]})", two[0][1] and two[1][1])),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]} || {two[1][0]})", two[0][1] or two[1][1])),
    ),
    max_leaves=8,
))  # fmt: skip
def test_conditions_are_read_as_they_are_bracketed(drawn: tuple[str, bool]) -> None:
    text, expected = drawn
    assert holds(text, success=True, failure=False) is expected


def run(failing: set[str], *tasks: dict[str, Any]) -> tuple[Harness, dict[str, str]]:
    """A run in which these tasks fail, and how each task ended."""
    plan, options = read(*tasks)
    harness = Harness()
    harness.request(plan, options=options, config=config())
    ends: dict[str, str] = {}
    while opened := [event for event in harness.events(TaskAssigned) if event.data.name not in ends]:
        names = {event.data.assignment.task_id: event.data.name for event in opened}
        for attempt in harness.open(TaskAttemptRequested):
            name = names[attempt.data.task_id]
            ends[name] = "failed" if name in failing else "done"
            harness.end(attempt, exited(attempt, 1 if name in failing else 0, again=False))
    names = {one.task_id: one.name for planned in harness.of(TasksPlanned) for one in planned.tasks}
    for change in steps(harness):
        if change.step in ("skip", "give_up"):
            ends[names[change.task_id]] = change.step
    return harness, ends


def steps(harness: Harness) -> list[TaskChange]:
    return [change for changed in harness.of(TasksChanged) for change in changed.changes]


def test_conditions_decide_what_runs_after_a_failure() -> None:
    harness, ends = run(
        {"bad"}, task("bad"), task("good"), task("lost", "bad"), task("cleanup", "bad", "good", **{"if": "always()"}),
        task("report", "bad", **{"if": "failure()"}), task("idle", "good", **{"if": "failure()"}),
        task("behind", "idle"), task("anyway", "idle", **{"if": "always()"}), task("never", **{"if": "failure()"}),
        task("far", "cleanup", **{"if": "failure()"}), task("near", "cleanup"),
    )
    assert ends == {
        "bad": "failed", "good": "done", "lost": "give_up", "cleanup": "done", "report": "done", "idle": "skip",
        "behind": "skip", "anyway": "done", "never": "skip", "far": "done", "near": "done",
    }
    (finished,) = harness.of(PlanFinished)
    assert (finished.done, finished.failed) == (9, 2)
    (cleanup,) = [one for one in harness.of(TaskAssigned) if one.name == "cleanup"]
    assert set(cleanup.after) == {"bad", "good"}
    (anyway,) = [one for one in harness.of(TaskAssigned) if one.name == "anyway"]
    assert anyway.after == {}, "what was skipped left nothing"


def test_a_task_that_may_fail_fails_and_the_run_goes_on_as_if_it_had_not() -> None:
    harness, ends = run(
        {"flaky"}, task("flaky", continue_on_error=True), task("after", "flaky"),
        task("no", "flaky", **{"if": "failure()"}),
    )
    assert ends == {"flaky": "failed", "after": "done", "no": "skip"}
    (finished,) = harness.of(PlanFinished)
    assert (finished.done, finished.failed, finished.tolerated) == (2, 0, 1)
    (ended,) = harness.of(RunEnded)
    assert ended.state == "done"
    assert [change.reason for change in steps(harness) if change.step == "fail"] == ["exit code 1 (continue_on_error)"]
