"""The second form in which runs are recorded: half as many events, and every view of a run is the same."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import export_engine, restore_engine
from pmagent.actors.orchestra.running.form import ends_at, steps
from pmagent.actors.registry import all_actors
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra import TaskOptions
from pmagent.contracts.orchestra_events import (
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    TaskAttemptRequested,
    TasksChanged,
    TasksPlanned,
)
from pmagent.events.event import Tail
from pmagent.events.sequencer import Sequencer
from tests.support.orchestra import RUN, Harness, config, exited, plan
from tests.support.run_folders import folded, shown

FORMS: tuple[dict[str, Any], dict[str, Any]] = ({}, {"form": 2})
OPTIONS = st.sampled_from([None, None, TaskOptions(continue_on_error=True), TaskOptions(condition="always()")])


def of_run(harness: Harness) -> list[str]:
    """The types of the run's events."""
    return [event.type for event in harness.history if event.correlation == RUN]


def told(harness: Harness) -> dict[str, str]:
    """The run's documents, without what says where in the log something stands."""
    found = {path: content for path, content in shown(folded(harness.history)).items() if isinstance(content, bytes)}
    places = re.compile(r"position \d+|`[0-9a-f]{64}`|\"(?:position|permit)\":\d+")
    return {
        path: places.sub("-", content.decode()) for path, content in found.items() if not path.endswith("tasks.jsonl")
    }


def test_a_run_of_one_task_is_ten_events(harness: Harness) -> None:
    harness.request({"echo": []}, form=2)
    harness.run()
    assert of_run(harness) == [
        "run.requested", "tasks.planned", "oa.permit_requested", "oa.permit_granted", "task.assigned",
        "task.attempt_requested", "task.exited", "task.finished", "plan.finished", "run.ended",
    ]  # fmt: skip
    assert not harness.open(RunRequested)


def test_a_permit_that_an_earlier_run_of_the_same_id_asked_for_is_not_the_runs(harness: Harness) -> None:
    harness.request({"echo": []}, form=2)
    harness.run()
    (grant,) = harness.events(OaPermitGranted)
    (request,) = harness.events(RunRequested)

    def begins(asked_at: int) -> bool:
        event = msgspec.structs.replace(grant, data=msgspec.structs.replace(grant.data, request=asked_at))
        return len(steps(event, request.data, 1, awaited=request.position)) == 2

    assert (begins(grant.data.request), begins(request.position - 1)) == (True, False)


@given(
    waits=st.lists(st.frozensets(st.integers(0, 5)), min_size=1, max_size=6),
    codes=st.lists(st.sampled_from([0, 0, 0, 1]), min_size=6, max_size=6),
    options=st.lists(OPTIONS, min_size=6, max_size=6),
    workers=st.integers(1, 3), cancelled=st.integers(0, 12), worse=st.integers(0, 12),
)  # fmt: skip
def test_both_forms_show_the_same_run(
    waits: list[frozenset[int]], codes: list[int], options: list[TaskOptions | None], workers: int, cancelled: int,
    worse: int,
) -> None:
    names = {f"t{at}": [f"t{one}" for one in sorted(needed) if one < at] for at, needed in enumerate(waits)}
    given_options = {f"t{at}": one for at, one in enumerate(options[: len(waits)]) if one is not None}
    harnesses = []
    for form in FORMS:
        harness = Harness()
        harness.request(plan(names), config=config(workers=workers, retries=1), options=given_options, **form)
        ids = {task.task_id: int(task.name[1:]) for planned in harness.of(TasksPlanned) for task in planned.tasks}
        harness.tool = lambda event, ids=ids: exited(event, codes[ids[event.data.task_id]])  # type: ignore[misc]
        turns = 0
        while harness.over() is None:
            turns += 1
            if turns == cancelled:
                harness.tell(RunCancelRequested(run_id=RUN))
            if turns == worse:
                harness.observe("BLOCKED")
            cancels = [event for event in harness.open(TaskAttemptRequested) if event.position in
                       harness.engine.effects.cancelled]  # fmt: skip
            if cancels:
                harness.end(cancels[0], exited(cancels[0], None))
            else:
                assert harness.step() or harness.wake()
        harnesses.append(harness)
    first, second = harnesses
    assert told(first) == told(second)
    assert len(of_run(second)) < len(of_run(first))
    assert {change.step for changed in second.of(TasksChanged) for change in changed.changes}.isdisjoint(
        ("start", "succeed")
    )


def test_the_request_is_the_timer_and_is_kept_in_a_snapshot(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []}, form=2, config=config(total=30))
    (timer,) = harness.open(RunRequested)
    assert ends_at(timer) == "2026-11-21T12:00:30.003000Z"
    copy = Engine(all_actors(), Sequencer(Tail()))
    last = harness.history[-1]
    restore_engine(copy, export_engine(harness.engine), Tail(last.position, time=last.time))
    assert copy.effects.open[timer.position] == timer
    assert harness.wake()
    harness.tool = exited
    over = harness.run()
    assert isinstance(over, RunEnded)
    assert over.state == "timed_out"


@pytest.mark.parametrize("form", FORMS)
def test_nothing_begins_under_the_permit_of_a_run_that_is_over(form: dict[str, Any], harness: Harness) -> None:
    harness.request({"a": []}, **form)
    harness.run()
    (permit,) = harness.events(OaPermitGranted)
    ended = harness.events(RunEnded)[0]
    assert ended.data.permit == permit.position if form else len(harness.of(OaPermitRevoked)) == 1
    assert permit.position not in harness.engine.states["gate"].permits
    assert permit.position not in harness.engine.states["oa"].permits


def test_a_refused_request_keeps_no_timer(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []}, form=2)
    harness.tell(RunRequested(run_id=RUN, intent="again", config=config(), plan=plan({"b": []}), form=2), "again", RUN)
    assert [one.code for one in harness.of(RunRefused)] == ["known"]
    assert [event.position for event in harness.open(RunRequested)] == [harness.events(RunRequested)[0].position]
    bad = Harness()
    bad.request(plan({"a": ["nobody"]}), form=2)
    assert [one.code for one in bad.of(RunRefused)] == ["bad_plan"]
    assert not bad.open(RunRequested)
    assert not bad.of(EffectRefused)
