"""A run that repeats another: what it takes over, and what it runs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_events import (
    Earlier,
    PlanMade,
    RunEnded,
    RunRefused,
    RunRequested,
    TaskAssigned,
    TaskAttemptRequested,
    TaskFinished,
)
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.event import Event
from pmagent.jobs.history import opened
from pmagent.orchestra.repeating import NotRepeatable, repeated
from pmagent.replay.areas.invariants_runs import check_runs
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.orchestra import RUN, config, exited, plan
from tests.support.pages import RunHarness, written

AGAIN, THIRD = RUN[:-1] + "a", RUN[:-1] + "b"
WAITS = {"a": [], "b": ["a"], "c": ["b"], "d": []}


class Repeated:
    """A run of which b fails, and c with it; and runs that repeat it."""

    def __init__(self, folder: Path, artifacts: Sequence[Artifact] = ()) -> None:
        self.artifacts = list(artifacts)
        self.harness = RunHarness()
        self.harness.tool = self.tool
        self.bad = {"b"}
        self.folder = folder
        self.given = 0
        self.harness.request(plan(WAITS, b={"intent": "go wrong"}), config=config(retries=0))
        self.harness.run()

    def tool(self, event: Event) -> Any:
        return exited(event, 3 if self.name(event) in self.bad else 0, artifacts=self.artifacts)

    def name(self, event: Event) -> str:
        return str(self.harness.history[event.data.assigned - 1].data.name)

    def jobs(self) -> Any:
        written(self.folder, self.harness.history[self.given :])
        self.given = len(self.harness.history)
        return opened(Layout(self.folder))

    def again(self, run_id: str, of: str = RUN, *, failed: bool) -> RunRequested:
        """The request that repeats the run ``of``."""
        with self.jobs() as jobs:
            return repeated(jobs, self.position(of), run_id, failed=failed)

    def position(self, run_id: str) -> int:
        requests = self.harness.events(RunRequested)
        return next(event.position for event in requests if event.data.run_id == run_id)

    def started(self, run_id: str) -> list[str]:
        attempts = self.harness.events(TaskAttemptRequested)
        return [self.name(event) for event in attempts if event.data.run_id == run_id]

    def run(self, asked: RunRequested) -> RunEnded | RunRefused:
        self.harness.tell(asked, asked.run_id, asked.run_id)
        return self.harness.run(asked.run_id)


@pytest.fixture
def first(tmp_path: Path) -> Repeated:
    return Repeated(tmp_path)


@each("failed, runs", [(True, ["b", "c"]), (False, ["a", "d", "b", "c"])])
def test_a_repetition_runs_what_is_not_done_or_everything(tmp_path: Path, failed: bool, runs: list[str]) -> None:
    first = Repeated(tmp_path / str(failed))
    first.bad.clear()
    end = first.run(first.again(AGAIN, failed=failed))
    assert (end.run_id, getattr(end, "state", ""), getattr(end, "done", 0)) == (AGAIN, "done", 4)
    assert first.started(AGAIN) == runs
    made = first.harness.of(PlanMade)[-1]
    assert (made.tasks, made.kept, made.attempts) == (len(runs), 4 - len(runs), len(runs))
    check_runs(first.harness.history)


def test_what_waits_for_a_task_that_is_done_reads_the_result_of_the_earlier_run(first: Repeated) -> None:
    ended = {event.data.result.task_id: event.position for event in first.harness.events(TaskFinished)}
    (of_a,) = (event.data for event in first.harness.events(TaskAssigned) if event.data.name == "a")
    asked = first.again(AGAIN, failed=True)
    assert asked.earlier is not None
    assert asked.earlier.run_id == RUN
    assert asked.earlier.done["a"] == ended[of_a.assignment.task_id]
    first.run(asked)
    (of_b,) = (one for one in first.harness.of(TaskAssigned) if (one.run_id, one.name) == (AGAIN, "b"))
    assert of_b.after == {"a": asked.earlier.done["a"]}
    first.bad.clear()
    third = first.again(THIRD, of=AGAIN, failed=True)
    assert third.earlier == Earlier(run_id=AGAIN, done=asked.earlier.done)
    assert first.run(third).run_id == THIRD
    assert first.started(THIRD) == ["b", "c"]
    check_runs(first.harness.history)


def test_the_plan_is_the_recorded_one(first: Repeated) -> None:
    asked = first.again(AGAIN, failed=False)
    assert asked.plan is not None
    assert {task.task_id: task.depends_on for task in asked.plan.tasks} == WAITS
    assert [task.intent for task in asked.plan.tasks if task.task_id == "b"] == ["go wrong"]
    assert asked.plan.tasks[0].constraints.max_retries == 0
    assert (asked.intent, asked.config) == ("do it", config(retries=0))


@each("done", [{"b": 1}, {"none": 1}])
def test_tasks_that_cannot_be_done_already_make_a_bad_plan(tmp_path: Path, done: dict[str, int]) -> None:
    first = Repeated(tmp_path / next(iter(done)))
    earlier = Earlier(run_id=RUN, done=done)
    end = first.run(RunRequested(run_id=AGAIN, intent="x", config=config(), plan=plan(WAITS), earlier=earlier))
    assert isinstance(end, RunRefused)
    assert end.code == "bad_plan"


def test_a_run_that_is_open_or_has_nothing_to_repeat_is_refused(first: Repeated) -> None:
    first.bad.clear()
    done = first.again(AGAIN, failed=True)
    first.run(done)
    with pytest.raises(NotRepeatable, match="is done"):
        first.again(THIRD, of=AGAIN, failed=True)
    assert len(first.harness.open(TaskAttemptRequested)) == 0
    first.harness.request({"a": []}, THIRD)
    with pytest.raises(NotRepeatable, match="not over"):
        first.again(RUN, of=THIRD, failed=False)


def test_results_that_are_gone_are_named(tmp_path: Path) -> None:
    lost = Artifact(path="rows/x.txt", size_bytes=3, checksum=sha256(b"row").hexdigest())
    first = Repeated(tmp_path, [lost])
    with pytest.raises(NotRepeatable, match=r"a/rows/x\.txt of the run .* is gone"):
        first.again(AGAIN, failed=True)
    assert first.again(AGAIN, failed=False).done == {}
    BlobStore(RealDisk(), str(Layout(tmp_path).blobs)).put(b"row")
    assert set(first.again(AGAIN, failed=True).done) == {"a", "d"}
