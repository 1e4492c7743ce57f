"""States change by the table's steps, and a task's end decides what becomes of those that wait for it."""

from __future__ import annotations

from typing import get_args

import pytest

from pmagent.actors.orchestra.running.states import STEPS, Board, IllegalStep, abandoned, begun, board, ended
from pmagent.contracts.orchestra import Step, TaskState
from pmagent.contracts.orchestra_events import TaskChange
from tests.support.cases import each

WAITS: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}
A, B, C, D, E = range(5)


def diamond(done: int = 0) -> Board:
    """a, then b and c, then d; and e by itself."""
    return board(list(WAITS), list(WAITS.values()), done)


def change(task: str, step: Step, reason: str = "") -> TaskChange:
    return TaskChange(task_id=task, step=step, state=STEPS[step][1], reason=reason)


def at(letters: str) -> Board:
    """The diamond with its tasks in these states."""
    return Board(diamond().order, letters)


def test_the_table_has_the_specifications_states_and_transitions_and_no_other() -> None:
    assert set(STEPS) == set(get_args(Step))
    assert set(STEPS.values()) == {
        ("planned", "running"), ("running", "done"), ("running", "failed"),
        ("planned", "blocked"), ("blocked", "planned"), ("blocked", "failed"), ("blocked", "done"),
    }
    assert {state for pair in STEPS.values() for state in pair} == set(get_args(TaskState))


def test_a_run_begins_with_those_blocked_that_wait() -> None:
    first = diamond()
    assert first.letters == "ppppp"
    changes = begun(first)
    assert changes == [change(name, "block") for name in "bcd"]
    after = first.stepped(changes)
    assert after.letters == "pbbbp"
    assert after.indexes("planned") == [A, E]
    assert not after.is_over()


def test_who_waits_only_for_what_is_done_since_an_earlier_plan_is_not_blocked() -> None:
    first = diamond(done=2)
    assert first.letters == "ddppp"
    assert begun(first) == [change("d", "block")]


def test_a_task_becomes_ready_when_the_last_that_it_waits_for_is_done() -> None:
    assert ended(at("rbbbp"), A, "done") == [change("a", "succeed"), change("b", "unblock"), change("c", "unblock")]
    assert ended(at("drrbp"), C, "done") == [change("c", "succeed")]
    assert ended(at("drdbp"), B, "done") == [change("b", "succeed"), change("d", "unblock")]


def test_all_that_waits_for_a_failed_task_fails_in_the_plans_order_and_says_so() -> None:
    changes = ended(at("rbbbp"), A, "failed", "exit code 1")
    lost = [change(name, "give_up", "dependency failed") for name in "bcd"]
    assert changes == [change("a", "fail", "exit code 1"), *lost]
    assert at("rbbbp").stepped(changes).letters == "ffffp"


def test_what_failed_before_keeps_its_reason_when_a_second_dependency_fails() -> None:
    first = ended(at("drrbp"), B, "failed")
    assert first == [change("b", "fail"), change("d", "give_up", "dependency failed")]
    assert ended(at("drrbp").stepped(first), C, "failed") == [change("c", "fail")]


def test_a_run_that_stops_ends_each_task_that_has_not_begun_by_steps_of_the_table() -> None:
    changes = abandoned(at("drbbp"), "cancelled")
    assert changes == [
        change("c", "give_up", "cancelled"),
        change("d", "give_up", "cancelled"),
        change("e", "block", "cancelled"),
        change("e", "give_up", "cancelled"),
    ]
    after = at("drbbp").stepped(changes)
    assert (after.letters, after.is_over()) == ("drfff", False)
    assert abandoned(after, "again") == []


@each("state", get_args(TaskState))
@each("step", get_args(Step))
def test_a_step_that_a_state_does_not_have_is_refused_and_every_other_is_made(state: TaskState, step: Step) -> None:
    leaves, reaches = STEPS[step]
    alone = Board(board(["a"], [[]]).order, state[0])
    if state == leaves:
        made = alone.change(0, step, "why")
        assert made == TaskChange(task_id="a", step=step, state=reaches, reason="why")
        assert alone.stepped([made]).state(0) == reaches
        return
    with pytest.raises(IllegalStep, match=f"^the task a is {state}; only one that is {leaves} can {step}$"):
        alone.change(0, step)
    said = f"^the task a is {state}; only one that is {leaves} can {step}, to {reaches}$"
    with pytest.raises(IllegalStep, match=said):
        alone.stepped([change("a", step)])


def test_a_change_that_says_another_state_than_its_step_reaches_is_refused() -> None:
    wrong = TaskChange(task_id="a", step="start", state="done")
    with pytest.raises(IllegalStep, match=r"^the task a is planned; only one that is planned can start, to running$"):
        diamond().stepped([wrong])


def test_a_task_of_another_plan_has_no_steps() -> None:
    with pytest.raises(IllegalStep, match=r"^the task z is not of this plan; it cannot start$"):
        diamond().stepped([change("z", "start")])


def test_a_step_leaves_the_board_before_it_as_it_was() -> None:
    first = diamond()
    after = first.stepped([change("a", "start")])
    assert (first.letters, after.letters) == ("ppppp", "rpppp")


@each("ids, waits", [(["a", "b"], [["b"], []]), (["a"], [["a"]]), (["a", "a"], [[], []])])
def test_tasks_out_of_order_make_no_board(ids: list[str], waits: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="do not stand in an order in which they may run"):
        board(ids, waits)


def test_a_task_that_is_done_may_have_followed_one_that_is_replaced() -> None:
    kept = board(["report", "again"], [["failed"], ["report"]], 1)
    assert (kept.letters, kept.order.waits) == ("dp", [[], [0]])
    with pytest.raises(KeyError):
        board(["report", "again"], [["failed"], ["report"]])


def test_many_layers_that_wait_for_each_other_fail_at_once() -> None:
    layers = [[f"{layer}.{place}" for place in range(10)] for layer in range(20)]
    waits = {name: layers[number - 1] if number else [] for number, layer in enumerate(layers) for name in layer}
    first = board(list(waits), list(waits.values()))
    running = first.stepped(begun(first)).stepped([change("0.0", "start")])
    assert len(ended(running, 0, "failed")) == 1 + 19 * 10
