"""Any plan: its order, its refusals, and every run of it under any outcomes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.graph import BadPlan, DependencyCycle, in_levels
from pmagent.actors.orchestra.planning.plan import Plan, make_plan
from pmagent.actors.orchestra.running.states import (
    DEPENDENCY_FAILED,
    STEPS,
    Board,
    IllegalStep,
    abandoned,
    begun,
    board,
    ended,
)
from pmagent.contracts.orchestra import TaskState
from pmagent.contracts.orchestra_events import TaskChange
from tests.support.orchestra import plan_in as read_plan

RUN = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
CONFIG = read_config('version: "1.0"')

Waits = dict[str, list[str]]


@st.composite
def orders(draw: st.DrawFn) -> Waits:
    """Tasks in any order in the plan, each waiting for some that come before it in a hidden order."""
    count = draw(st.integers(1, 12))
    hidden = [f"t{number}" for number in range(count)]
    waits = {
        name: draw(st.lists(st.sampled_from(hidden[:place]), unique=True, max_size=4)) if place else []
        for place, name in enumerate(hidden)
    }
    return {name: waits[name] for name in draw(st.permutations(hidden))}


def text(waits: Waits) -> str:
    return json.dumps(
        [{"task_id": name, "intent": name, "tools": ["echo"], "depends_on": needed} for name, needed in waits.items()]
    )


def plan_of(waits: Waits) -> Plan:
    return make_plan(read_plan(text(waits)), CONFIG, RUN)


@given(orders())
def test_each_task_comes_after_all_that_it_waits_for_and_first_of_the_plan_among_those_that_may(waits: Waits) -> None:
    plan = plan_of(waits)
    order = [task.name for task in plan.tasks]
    assert sorted(order) == sorted(waits)
    come: set[str] = set()
    for name in order:
        assert name == next(one for one in waits if one not in come and come.issuperset(waits[one]))
        come.add(name)


@given(orders())
def test_levels_hold_every_task_once_and_the_earliest_that_it_can_be(waits: Waits) -> None:
    levels = in_levels(waits)
    assert sorted(name for level in levels for name in level) == sorted(waits)
    at = {name: number for number, level in enumerate(levels) for name in level}
    for name, needed in waits.items():
        assert at[name] == max((at[one] + 1 for one in needed), default=0)


@given(orders())
def test_the_same_plan_is_the_same_bytes(waits: Waits) -> None:
    assert plan_of(waits) == plan_of(dict(waits))


@given(orders(), st.data())
def test_one_edge_back_makes_a_circle_that_the_refusal_shows(waits: Waits, data: st.DataObject) -> None:
    pairs = [(one, name) for name in waits for one in above(waits, name)]
    if not pairs:
        return
    high, low = data.draw(st.sampled_from(pairs))
    waits[high] = [*waits[high], low]
    with pytest.raises(DependencyCycle) as caught:
        plan_of(waits)
    circle = caught.value.message.split(": ")[-1].removesuffix(" (each for the next)").split(" -> ")
    assert circle[0] == circle[-1]
    assert len(set(circle)) == len(circle) - 1
    assert all(following in waits[name] for name, following in pairwise(circle))


def above(waits: Waits, name: str) -> list[str]:
    """All that the task waits for, through others too; in order."""
    found: dict[str, None] = {}
    level = [name]
    while level:
        level = list(dict.fromkeys(one for each in level for one in waits[each] if one not in found))
        found |= dict.fromkeys(level)
    return list(found)


KEYS = ["task_id", "intent", "tools", "depends_on", "tasks", "dag", "x"]
junk: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["a", "b", "echo"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=15,
)


@given(junk)
def test_whatever_is_given_is_a_plan_or_refused_with_one_error(value: Any) -> None:
    try:
        plan = make_plan(read_plan(json.dumps(value)), CONFIG, RUN)
    except BadPlan as error:
        said = (error.message, error.hint)
    else:
        said = ("the plan", plan.plan_id)
    assert all(said)
    assert said[0].startswith("the plan")


@given(orders(), st.data())
def test_every_run_ends_with_each_task_done_or_failed_and_none_too_early(waits: Waits, data: st.DataObject) -> None:
    plan = plan_of(waits)
    needed = {task.task_id: task.depends_on for task in plan.tasks}
    now = board(list(needed), list(needed.values()))
    assert now.letters == "p" * len(needed)
    now = made(now, begun(now))
    ran: set[str] = set()
    for _ in range(2 * len(needed)):
        if now.is_over():
            break
        ready, running = now.indexes("planned"), now.indexes("running")
        if ready and (not running or data.draw(st.booleans())):
            name = now.order.ids[ready[0]]
            assert all(state_of(now, one) == "done" for one in needed[name])
            ran.add(name)
            now = made(now, [now.change(ready[0], "start")])
        else:
            place = data.draw(st.sampled_from(running))
            now = made(now, ended(now, place, data.draw(st.sampled_from(["done", "failed"]))))
        for one, others in needed.items():
            waiting = [state_of(now, other) for other in others]
            may_still_run = "failed" not in waiting and waiting.count("done") < len(waiting)
            assert (state_of(now, one) == "blocked") == may_still_run
    assert now.is_over()
    assert {name for name in needed if all(state_of(now, one) == "done" for one in needed[name])} == ran


@given(orders(), st.data())
def test_a_run_that_stops_anywhere_leaves_only_what_runs(waits: Waits, data: st.DataObject) -> None:
    plan = plan_of(waits)
    now = board([task.task_id for task in plan.tasks], [task.depends_on for task in plan.tasks])
    now = made(now, begun(now))
    for _ in range(data.draw(st.integers(0, len(waits)))):
        ready = now.indexes("planned")
        if ready:
            now = made(now, [now.change(ready[0], "start")])
            if data.draw(st.booleans()):
                now = made(now, ended(now, ready[0], data.draw(st.sampled_from(["done", "failed"]))))
    running = now.indexes("running")
    stopped = now.stepped(abandoned(now, "stopped"))
    assert stopped.indexes("running") == running
    assert stopped.count("planned") == stopped.count("blocked") == 0
    assert stopped.indexes("done") == now.indexes("done")


@given(orders(), st.data())
def test_a_step_that_the_table_does_not_have_cannot_be_written(waits: Waits, data: st.DataObject) -> None:
    """Any changes are either taken one by one by the table of states, or none of them is."""
    plan = plan_of(waits)
    ids = [task.task_id for task in plan.tasks]
    first = board(ids, [task.depends_on for task in plan.tasks])
    wanted = data.draw(
        st.lists(
            st.builds(
                TaskChange, task_id=st.sampled_from([*ids, "nobody"]), step=st.sampled_from(list(STEPS)),
                state=st.sampled_from(get_args(TaskState)),
            ),
            max_size=6,
        )
    )
    states: dict[str, str] = dict.fromkeys(ids, "planned")
    for change in wanted:
        if (states.get(change.task_id), change.state) != STEPS[change.step]:
            with pytest.raises(IllegalStep):
                first.stepped(wanted)
            return
        states[change.task_id] = change.state
    after = first.stepped(wanted)
    assert [after.state(place) for place in range(len(ids))] == list(states.values())


def state_of(now: Board, name: str) -> str:
    return now.state(now.order.by_id[name])


def made(before: Board, changes: list[TaskChange]) -> Board:
    """The board after these changes; each is a step of the table, and there are no others."""
    states = {name: before.state(place) for name, place in before.order.by_id.items()}
    for change in changes:
        assert (states[change.task_id], change.state) == STEPS[change.step]
        assert (change.reason == DEPENDENCY_FAILED) == (change.step == "give_up")
        states[change.task_id] = change.state
    after = before.stepped(changes)
    one_by_one = before
    for change in changes:
        one_by_one = one_by_one.stepped([change])
    assert one_by_one == after
    assert list(states.values()) == [after.state(place) for place in range(len(after.letters))]
    return after
