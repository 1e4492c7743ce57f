"""Which documents a run leaves, and that neither state nor writing grows with the log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.content import BlobContent
from pmagent.contracts.effect import RequestRefused
from pmagent.contracts.orchestra_events import (
    RunBegun,
    RunCancelRequested,
    RunEnded,
    RunRequested,
    TaskAttemptRequested,
    TaskFinished,
)
from pmagent.events.event import Event
from pmagent.events.tree import Mark, Tree
from pmagent.projections.core import disk
from pmagent.projections.core.disk import DocumentStore
from pmagent.projections.core.documents import Documents, computed
from pmagent.projections.runs.folders import RUNS_KEPT, RunFolders, RunsView
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, config, exited, plan
from tests.support.run_folders import (
    FOLDER,
    JOB,
    artifact,
    copied,
    done,
    ended,
    folded,
    ids,
    other,
    shown,
    sums,
    value,
    view,
)


def names(harness: Harness, run_id: str = RUN) -> list[str]:
    return sorted(
        path.removeprefix(f"runs/{run_id}/") for path in shown(folded(harness.history)) if not path.startswith("jobs/")
    )


def test_a_run_that_is_done_has_all_documents_and_each_artifact_under_its_task() -> None:
    harness = done()
    assert names(harness) == sorted(
        ["config.yaml", "metrics.json", "plan.json", "report.md", "tasks.jsonl"]
        + [f"artifacts/{task}/stdout" for task in ids(harness).values()]
    )
    found = shown(folded(harness.history))
    left = artifact(ids(harness)["a"], "stdout", b"said")
    assert found[f"{FOLDER}/artifacts/{left.path}"] == BlobContent(left.checksum, 4)
    assert found.keys() - {JOB} == {f"{FOLDER}/{name}" for name in names(harness)}


def test_a_run_that_is_planned_only_has_neither_log_nor_metrics(harness: Harness) -> None:
    harness.request({"a": []}, plan_only=True)
    assert ended(harness) == "planned"
    assert names(harness) == ["config.yaml", "plan.json", "report.md"]
    assert value(harness.history, JOB)["status"] == "complete"


@each("why", ["not permitted", "bad plan", "orchestrator halted"])
def test_a_refused_run_has_its_configuration_and_says_why(why: str) -> None:
    harness = Harness("BLOCKED" if why == "not permitted" else "NORMAL")
    harness.request({"a": [], "b": ["a"]} if why != "bad plan" else {"a": ["a"]})
    history = harness.history
    if why == "orchestrator halted":
        asked = harness.events(RunRequested)[0]
        refused = RequestRefused(request=asked.position, name="orchestrator", reason="halted")
        end = Event(
            asked.position + 1, asked.time, "r", "decision", "engine", "request.refused", RUN, asked.position, refused,
            b"",
        )
        history = [*history[: asked.position], end]
    else:
        assert harness.over() is not None
    found = shown(folded(history))
    with_plan = why == "not permitted"
    expected = {"config.yaml", "report.md"} | ({"plan.json", "tasks.jsonl", "metrics.json"} if with_plan else set())
    assert found.keys() == {f"{FOLDER}/{name}" for name in expected} | {JOB}
    job = value(history, JOB)
    assert job["status"] == "failed"
    assert job["result"]["state"] == "refused"
    code = {"not permitted": "not_permitted", "bad plan": "bad_plan", "orchestrator halted": "halted"}[why]
    assert job["error"]["code"] == code
    assert job["error"]["detail"] != ""


def test_documents_are_there_as_soon_as_they_can_be_and_only_grow_in_number_and_the_log_in_length() -> None:
    harness = done()
    documents, before, log, states = folded([]), set[str](), b"", list[str]()
    for event in harness.history:
        folded([event], documents)
        found = shown(documents)
        assert before <= found.keys()
        before = set(found)
        if isinstance(event.data, RunRequested):
            assert before == {f"{FOLDER}/config.yaml", f"{FOLDER}/report.md", JOB}
        now = found.get(f"{FOLDER}/tasks.jsonl", b"")
        assert isinstance(now, bytes)
        assert now.startswith(log)
        log = now
        if JOB in found:
            states.append(json.loads(found[JOB])["status"])  # type: ignore[arg-type]
    assert list(dict.fromkeys(states)) == ["queued", "running", "complete"]


def test_nothing_that_happens_after_its_end_changes_a_run(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []})
    attempt = harness.events(TaskAttemptRequested)[0]
    over = RunEnded(
        request=harness.events(RunRequested)[0].position, run_id=RUN, state="failed", reasons=["the worker is halted"],
        mend=[], done=0, failed=0, security=False,
    )
    harness.tell(over, correlation=RUN)
    documents = folded(harness.history)
    before = shown(documents)
    count = len(harness.history)
    harness.end(attempt, exited(attempt, artifacts=[artifact(attempt.data.task_id, "stdout")]))
    harness.tell(RunCancelRequested(run_id=RUN))
    assert documents.take() != {}
    assert not documents.fold(harness.history[count:], sums(harness.history[count:]))
    assert shown(documents) == before
    assert documents.take() == {}


def test_a_run_that_is_asked_for_again_while_it_is_open_stays_the_first(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []})
    before = value(harness.history, f"{FOLDER}/plan.json")
    harness.tell(RunRequested(run_id=RUN, intent="another", plan=plan({"x": []}), config=config()), "again", RUN)
    assert harness.over() is not None
    assert value(harness.history, f"{FOLDER}/plan.json") == before
    assert value(harness.history, JOB)["status"] == "running"


def test_a_run_with_the_id_of_one_that_has_ended_takes_its_place_when_that_ones_documents_are_given_out() -> None:
    harness = done()
    documents = folded(harness.history)
    copies = {path for path in shown(documents) if "/artifacts/" in path}
    count = len(harness.history)
    harness.tell(RunRequested(run_id=RUN, intent="another", plan=plan({"x": []}), config=config()), "again", RUN)
    folded(harness.history[count:], documents)
    assert documents.owing
    assert copies
    assert not copies & shown(documents).keys()
    given = computed(documents.take())
    assert copies < given.keys()
    assert b"another" in given[f"{FOLDER}/report.md"]  # type: ignore[operator]
    assert value(harness.history, JOB)["status"] == "running"


# --- growth ----------------------------------------------------------------------------------------------------------


def many(count: int) -> Harness:
    """So many runs, one after the other."""
    harness = Harness()
    for number in range(count):
        harness.request({"a": []}, run_id=other(number))
        harness.run(other(number))
    return harness


def test_old_runs_leave_the_state_and_their_documents_have_been_given_out() -> None:
    harness = many(RUNS_KEPT + 5)
    whole = folded([])
    seen: dict[str, bytes] = {}
    for event in harness.history:
        folded([event], whole)
        for path, part in whole.take_retired().items():
            content = part.content()
            seen[path] = content if isinstance(content, bytes) else b""
    state: RunsView = whole._states["run_folders"]
    assert list(state.jobs) == [other(number) for number in range(5, RUNS_KEPT + 5)]
    for number in range(5):
        run = other(number)
        assert seen.keys() >= {f"runs/{run}/{name}" for name in ("config.yaml", "plan.json", "report.md")}
        assert json.loads(seen[f"jobs/{run}.json"])["status"] == "complete"
    assert not any(other(5) in path for path in seen)


def test_an_open_run_stays_however_many_end(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []}, run_id=other(999))
    held = harness.open(TaskAttemptRequested)[0]
    harness.tool = lambda event: None if event.position == held.position else exited(event)
    for number in range(RUNS_KEPT + 3):
        harness.request({"a": []}, run_id=other(number))
        harness.run(other(number))
    state = view(harness)
    assert other(999) in state.jobs
    assert len(state.jobs) == RUNS_KEPT + 1


def test_runs_with_many_tasks_leave_sooner(harness: Harness) -> None:
    documents = folded([], Documents([RunFolders(tasks=5)]))
    for number, size in enumerate([1, 2, 3, 9]):
        count = len(harness.history)
        harness.request({f"t{task}": [] for task in range(size)}, run_id=other(number))
        harness.run(other(number))
        folded(harness.history[count:], documents)
        expected = [[0], [0, 1], [1, 2], [3]][number]
        assert list(documents._states["run_folders"].jobs) == [other(one) for one in expected]


def test_only_what_may_have_changed_is_given_again() -> None:
    harness = done()
    harness.request({"z": []}, run_id=other(7))
    harness.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "new")])
    documents = folded(harness.history)
    assert set(documents.take()) == set(shown(documents))
    assert documents.take() == {}
    count = len(harness.history)
    harness.run(other(7))
    documents.fold(harness.history[count:], sums(harness.history[count:]))
    changed = documents.take()
    task = view(harness).jobs[other(7)].planned_tasks[0].task_id
    assert set(changed) == {
        f"runs/{other(7)}/{name}" for name in ("tasks.jsonl", "metrics.json", "report.md", f"artifacts/{task}/new")
    } | {f"jobs/{other(7)}.json"}


def test_retired_documents_that_were_written_as_they_are_are_not_given_again() -> None:
    harness = many(RUNS_KEPT)
    documents = folded(harness.history)
    documents.take()
    documents.settle()
    count = len(harness.history)
    harness.request({"a": []}, run_id=other(5_000))
    harness.run(other(5_000))
    documents.fold(harness.history[count:], sums(harness.history[count:]))
    assert not documents.owing
    assert not any(other(0) in path for path in documents.take())


def test_what_is_owed_stays_owed_until_it_is_settled() -> None:
    harness = many(RUNS_KEPT + 1)
    documents = folded(harness.history)
    assert documents.owing
    first = computed(documents.take())
    assert f"runs/{other(0)}/report.md" in first
    assert documents.owing  # it may not have been written
    documents.doubt()
    assert computed(documents.take()).keys() == first.keys()
    documents.settle()
    assert (documents.owing, documents.take()) == (False, {})


def test_a_start_from_the_snapshot_cache_goes_on_with_the_same_documents(harness: Harness) -> None:
    harness.tool = lambda event: exited(
        event, 1 if event.data.attempt == 1 else 0, artifacts=[artifact(event.data.task_id, "x")], notes=["n"],
        last_lines=["l"],
    )  # fmt: skip
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    live = folded([])
    for event in harness.history:
        live = copied(folded([event], live))
    assert shown(live) == shown(folded(harness.history))
    assert live._states == folded(harness.history)._states


def test_the_types_that_it_hears_are_those_of_a_runs_history() -> None:
    """All that a run's documents show is heard: nothing else in the log leads to another document."""
    harness = done()
    unheard = {event.type for event in harness.history if type(event.data) not in RunFolders.hears}
    of_runs = {name for name in unheard if name.split(".")[0] in ("run", "plan", "planner", "task", "tasks")}
    assert of_runs == set()
    assert {RunBegun, TaskFinished} <= RunFolders.hears
    assert TimerRequested not in RunFolders.hears


def test_of_a_long_run_each_byte_of_the_log_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so are plan, configuration and artifacts: what is written grows with the run, not with its square."""
    harness = Harness()
    blobs = {sha256(b"said").hexdigest(): b"said"}
    harness.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "stdout", b"said")])
    harness.request({f"t{number}": [] for number in range(600)}, config=config(workers=8))
    assert ended(harness) == "done"
    written: Counter[str] = Counter()

    class Counting(Tree):
        def replace(
            self, path: str, pieces: Iterable[bytes], *, sync: bool = True, own: int = 0, shared: bool = False
        ) -> Mark:
            content = b"".join(pieces)
            written[path] += len(content)
            return super().replace(path, [content], sync=sync, own=own, shared=shared)

        def extend(self, path: str, mark: Mark, pieces: Iterable[bytes], own: int = 0) -> Mark | None:
            content = b"".join(pieces)
            written[path] += len(content)
            return super().extend(path, mark, [content], own)

    class Blobs:
        def get(self, sha256: str) -> bytes:
            return blobs[sha256]

    monkeypatch.setattr(disk, "Tree", Counting)
    store, documents = DocumentStore(tmp_path, Blobs()), folded([])
    for start in range(0, len(harness.history), 100):
        folded(harness.history[start : start + 100], documents)
        store.write(documents.take())
        documents.settle()
    for name in ("tasks.jsonl", "plan.json", "config.yaml"):
        assert written[f"{FOLDER}/{name}"] == (tmp_path / FOLDER / name).stat().st_size
    copies = [count for path, count in written.items() if path.endswith("/stdout")]
    assert (len(copies), set(copies)) == (600, {4})
    assert not [found for _, found in store.differences(documents.every()) if found is not None]
