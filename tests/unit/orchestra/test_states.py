"""States change by the table's steps, and a task's end decides what becomes of those that wait for it."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from actors.orchestra.config import read_config
from actors.orchestra.plan import make_plan, read_plan
from actors.orchestra.states import STEPS, Board, Change, IllegalStep, Step, begun, ended, started
from contracts.orchestra import PlanAnswer, TaskState

RUN = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
CONFIG = read_config('version: "1.0"')


def diamond() -> PlanAnswer:
    """a, then b and c, then d; and e by itself. Ids are the letters' places in the plan's own order."""
    waits = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}
    tasks = [
        {"task_id": name, "intent": name, "tools": ["echo"], "depends_on": needed} for name, needed in waits.items()
    ]
    return make_plan(read_plan(json.dumps(tasks)), CONFIG, RUN).answer


def letters(board: Board) -> str:
    """The first letter of each task's state, in the plan's order; ``blocked`` is w, it waits."""
    return "".join("w" if state == "blocked" else state[0] for state in board.states.values())


def test_the_table_has_the_specifications_states_and_transitions_and_no_other() -> None:
    assert set(STEPS) == set(get_args(Step))
    assert set(STEPS.values()) == {
        ("planned", "running"), ("running", "done"), ("running", "failed"),
        ("planned", "blocked"), ("blocked", "planned"), ("blocked", "failed"),
    }
    assert {state for pair in STEPS.values() for state in pair} == set(get_args(TaskState))


def test_a_run_begins_with_those_blocked_that_wait() -> None:
    plan = diamond()
    board, changes = begun(plan)
    a, b, c, d, e = (task.task_id for task in plan.tasks)
    assert board.states == {a: "planned", b: "blocked", c: "blocked", d: "blocked", e: "planned"}
    assert changes == [Change(name, "block", "blocked") for name in (b, c, d)]
    assert board.ready() == [a, e]
    assert not board.is_over()


def test_a_task_becomes_ready_when_the_last_that_it_waits_for_is_done() -> None:
    plan = diamond()
    board, _ = begun(plan)
    a, b, c, d, e = (task.task_id for task in plan.tasks)
    board, _ = started(board, a)
    assert (board.running(), board.ready()) == ([a], [e])
    board, changes = ended(board, a, "done")
    assert changes == [Change(a, "succeed", "done"), Change(b, "unblock", "planned"), Change(c, "unblock", "planned")]
    for name in (c, b):
        board, _ = started(board, name)
    board, changes = ended(board, c, "done")
    assert changes == [Change(c, "succeed", "done")]
    board, changes = ended(board, b, "done")
    assert changes == [Change(b, "succeed", "done"), Change(d, "unblock", "planned")]
    assert letters(board) == "dddpp"


def test_all_that_waits_for_a_failed_task_fails_in_the_plans_order_and_says_so() -> None:
    plan = diamond()
    board, _ = begun(plan)
    a, b, c, d, e = (task.task_id for task in plan.tasks)
    board, changes = ended(started(board, a)[0], a, "failed", "exit code 1")
    lost = [Change(name, "give_up", "failed", "dependency failed") for name in (b, c, d)]
    assert changes == [Change(a, "fail", "failed", "exit code 1"), *lost]
    assert board.ready() == [e]
    board, _ = ended(started(board, e)[0], e, "done")
    assert board.is_over()


def test_what_failed_before_keeps_its_reason_when_a_second_dependency_fails() -> None:
    plan = diamond()
    board, _ = begun(plan)
    a, b, c, d, _e = (task.task_id for task in plan.tasks)
    board, _ = ended(started(board, a)[0], a, "done")
    board, _ = started(started(board, b)[0], c)
    board, changes = ended(board, b, "failed")
    assert changes[1:] == [Change(d, "give_up", "failed", "dependency failed")]
    board, changes = ended(board, c, "failed")
    assert changes == [Change(c, "fail", "failed")]
    assert letters(board) == "dfffp"


@pytest.mark.parametrize("state", get_args(TaskState))
def test_a_step_that_a_state_does_not_have_is_refused(state: TaskState) -> None:
    board = Board({"a": state}, {"a": []})
    if state != "planned":
        with pytest.raises(IllegalStep, match=f"^the task a is {state}; only one that is planned can start$"):
            started(board, "a")
    if state != "running":
        with pytest.raises(IllegalStep, match=f"^the task a is {state}; only one that is running can succeed$"):
            ended(board, "a", "done")
        with pytest.raises(IllegalStep, match=f"^the task a is {state}; only one that is running can fail$"):
            ended(board, "a", "failed")


def test_a_task_of_another_run_has_no_steps() -> None:
    with pytest.raises(IllegalStep, match="not of this run"):
        started(Board({}, {}), "a")


def test_a_change_leaves_the_board_before_it_as_it_was() -> None:
    board, _ = begun(diamond())
    before = dict(board.states)
    after, _ = started(board, board.ready()[0])
    assert board.states == before
    assert after.states != before


def test_many_layers_that_wait_for_each_other_fail_at_once() -> None:
    layers = [[f"{layer}.{place}" for place in range(10)] for layer in range(20)]
    waits = {name: layers[number - 1] if number else [] for number, layer in enumerate(layers) for name in layer}
    states: dict[str, TaskState] = dict.fromkeys(waits, "blocked")
    board = Board(states | {"0.0": "running"}, waits)
    board, changes = ended(board, "0.0", "failed")
    assert len(changes) == 1 + 19 * 10
