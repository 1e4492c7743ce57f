"""What a run leaves, as a function of its events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.clock import TimerRequested
from contracts.content import BlobContent
from contracts.effect import EffectInterrupted, RequestRefused
from contracts.orchestra import PlanAnswer
from contracts.orchestra_events import (
    PlannerCallRequested,
    RunBegun,
    RunCancelRequested,
    RunEnded,
    RunRequested,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
)
from events.event import Event
from events.tree import Mark, Tree
from projections import disk
from projections.disk import Desk
from projections.documents import Documents, computed
from projections.runs.folders import RUNS_KEPT, RunFolders, RunsView
from projections.runs.numbers import task_documents
from projections.runs.view import NOTES_MAX, SAID_MAX
from tests.support.orchestra import RUN, Yard, config, exited, plan, replied
from tests.support.run_folders import artifact, copied, ended, folded, log_lines, schema, shown, sums, text, value

JOB = f"jobs/{RUN}.json"
FOLDER = f"runs/{RUN}"


def other(number: int) -> str:
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012}"


def done(**more: Any) -> Yard:
    """A run of three tasks that went well; each left a file."""
    yard = Yard()
    yard.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "stdout", b"said")])
    yard.request({"a": [], "b": ["a"], "c": ["a", "b"]}, **more)
    assert ended(yard) == "done"
    return yard


def names(yard: Yard, run_id: str = RUN) -> list[str]:
    return sorted(
        path.removeprefix(f"runs/{run_id}/") for path in shown(folded(yard.history)) if not path.startswith("jobs/")
    )


def view(yard: Yard) -> RunsView:
    documents = folded(yard.history)
    found = documents._states["run_folders"]
    assert isinstance(found, RunsView)
    return found


def ids(yard: Yard) -> dict[str, str]:
    """Name -> task id."""
    return {planned.name: planned.task_id for planned in view(yard).runs[RUN].planned_tasks}


# --- which documents there are ---------------------------------------------------------------------------------------


def test_a_run_that_is_done_has_all_documents_and_each_artifact_under_its_task() -> None:
    yard = done()
    assert names(yard) == sorted(
        ["config.yaml", "metrics.json", "plan.json", "report.md", "tasks.jsonl"]
        + [f"artifacts/{task}/stdout" for task in ids(yard).values()]
    )
    found = shown(folded(yard.history))
    left = artifact(ids(yard)["a"], "stdout", b"said")
    assert found[f"{FOLDER}/artifacts/{left.path}"] == BlobContent(left.checksum, 4)
    assert found.keys() - {JOB} == {f"{FOLDER}/{name}" for name in names(yard)}


def test_a_run_that_is_planned_only_has_neither_log_nor_metrics() -> None:
    yard = Yard()
    yard.request({"a": []}, plan_only=True)
    assert ended(yard) == "planned"
    assert names(yard) == ["config.yaml", "plan.json", "report.md"]
    assert value(yard.history, JOB)["status"] == "complete"


@pytest.mark.parametrize("why", ["not permitted", "bad plan", "orchestrator halted"])
def test_a_refused_run_has_its_configuration_and_says_why(why: str) -> None:
    yard = Yard("BLOCKED" if why == "not permitted" else "NORMAL")
    yard.request({"a": [], "b": ["a"]} if why != "bad plan" else {"a": ["a"]})
    history = yard.history
    if why == "orchestrator halted":
        asked = yard.events(RunRequested)[0]
        refused = RequestRefused(request=asked.position, name="orchestrator", reason="halted")
        end = Event(
            asked.position + 1, asked.time, "r", "decision", "engine", "request.refused", RUN, asked.position, refused,
            b"",
        )
        history = [*history[: asked.position], end]
    else:
        assert yard.over() is not None
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
    yard = done()
    documents, before, log, states = folded([]), set[str](), b"", list[str]()
    for event in yard.history:
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


def test_nothing_that_happens_after_its_end_changes_a_run() -> None:
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []})
    attempt = yard.events(TaskAttemptRequested)[0]
    over = RunEnded(
        request=yard.events(RunRequested)[0].position, run_id=RUN, state="failed", reasons=["the worker is halted"],
        mend=[], done=0, failed=0, security=False,
    )
    yard.tell(over, correlation=RUN)
    documents = folded(yard.history)
    before = shown(documents)
    count = len(yard.history)
    yard.end(attempt, exited(attempt, artifacts=[artifact(attempt.data.task_id, "stdout")]))
    yard.tell(RunCancelRequested(run_id=RUN))
    assert documents.take() != {}
    assert not documents.fold(yard.history[count:], sums(yard.history[count:]))
    assert shown(documents) == before
    assert documents.take() == {}


def test_a_run_that_is_asked_for_again_while_it_is_open_stays_the_first() -> None:
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []})
    before = value(yard.history, f"{FOLDER}/plan.json")
    yard.tell(RunRequested(run_id=RUN, intent="another", plan=plan({"x": []}), config=config()), "again", RUN)
    assert yard.over() is not None
    assert value(yard.history, f"{FOLDER}/plan.json") == before
    assert value(yard.history, JOB)["status"] == "running"


def test_a_run_with_the_id_of_one_that_has_ended_takes_its_place() -> None:
    yard = done()
    yard.tell(RunRequested(run_id=RUN, intent="another", plan=plan({"x": []}), config=config()), "again", RUN)
    assert "another" in text(yard.history, "report.md")
    assert value(yard.history, JOB)["status"] == "running"


# --- what they say ---------------------------------------------------------------------------------------------------


def test_the_plan_is_the_specifications_answer_with_dependencies() -> None:
    yard = done()
    said = msgspec.convert(value(yard.history, f"{FOLDER}/plan.json"), PlanAnswer)
    name = {task: name for name, task in ids(yard).items()}
    assert [[name[one] for one in edge] for edge in said.dag.edges] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert [name[task.task_id] for task in said.tasks] == ["a", "b", "c"]


def test_metrics_count_what_happened() -> None:
    yard = Yard()
    failing = {"b": 1, "c": 5}

    def tool(event: Event) -> TaskExited:
        name = {task: name for name, task in ids(yard).items()}[event.data.task_id]
        code = 1 if event.data.attempt <= failing.get(name, 0) else 0
        return exited(event, code, artifacts=[artifact(event.data.task_id, "stdout", b"12345")])

    yard.tool = tool
    yard.request({"a": [], "b": [], "c": [], "d": ["c"]})
    assert ended(yard) == "failed"
    said = value(yard.history, f"{FOLDER}/metrics.json")
    last = yard.events(RunEnded)[0]
    assert said["run_id"] == RUN
    assert (said["started_at"], said["completed_at"]) == (yard.events(RunRequested)[0].time, last.time)
    assert 6_000 <= said["total_duration_ms"] < 6_100
    counted = {name: said[f"tasks_{name}"] for name in ("total", "succeeded", "failed", "retried")}
    assert counted == {"total": 4, "succeeded": 2, "failed": 2, "retried": 2}
    assert said["avg_task_duration_ms"] == 500.0  # 250, 500 and 750 of three tasks that ran
    assert said["artifacts_total_bytes"] == 15
    assert said["total_tokens_used"] is None
    assert [(task["name"], task["retry_count"], task["exit_code"], task["state"]) for task in said["tasks"]] == [
        ("a", 0, 0, "done"), ("b", 1, 0, "done"), ("c", 2, 1, "failed"), ("d", 0, None, "failed"),
    ]  # fmt: skip
    assert value(yard.history, JOB)["error"] == {"code": "failed", "detail": "2 of 4 tasks failed"}


def test_what_an_orderly_stop_cuts_off_uses_up_no_retry() -> None:
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []})
    for reason, used in (("stop", 0), ("crash", 1), ("stop", 1)):
        attempt = yard.open(TaskAttemptRequested)[0]
        yard.end(attempt, EffectInterrupted(request=attempt.position, reason=reason))
        yard.start()
        yard.observe("NORMAL")
        while not yard.open(TaskAttemptRequested):
            assert yard.wake()
        assert value(yard.history, f"{FOLDER}/metrics.json")["tasks"][0]["retry_count"] == used
    assert view(yard).runs[RUN].tasks[0].attempts == 4


def test_every_line_of_the_log_is_of_the_run_and_says_who_says_it() -> None:
    yard = done()
    lines = log_lines(yard.history)
    assert {line["trace_id"] for line in lines} == {RUN}
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)
    of_task = [(line["component"], line["message"]) for line in lines if line["task_id"] == ids(yard)["a"]]
    assert of_task == [
        ("L2", "assigned"), ("L3", "attempt 1 begins"), ("L3", "attempt 1 exited"), ("L3", "done")
    ]
    assert lines[0]["message"] == "the run is asked for"
    assert lines[-1]["message"] == "the run has ended: done"
    assert lines[5]["payload"]["tool"] == "echo"


def test_the_log_holds_what_is_at_least_as_grave_as_configured() -> None:
    ranks = ["debug", "info", "warn", "error"]
    found: dict[str, list[dict[str, Any]]] = {}
    for level in ranks:
        yard = Yard()
        yard.tool = lambda event: exited(event, 1, last_lines=["no"])
        yard.request({"a": [], "b": ["a"]}, config=config(f"telemetry:\n  level: {level}"))
        assert ended(yard) == "failed"
        found[level] = log_lines(yard.history)
    for number, level in enumerate(ranks):
        assert found[level] == [line for line in found["debug"] if ranks.index(line["level"]) >= number]
        assert len(found[level]) > (len(found[ranks[number + 1]]) if number < 3 else 0)


def test_documents_lie_where_the_configuration_says() -> None:
    paths = (
        "paths:\n  runs: out/all\n  logs: logs/{run_id}.jsonl\n  artifacts: out/{run_id}/kept\n"
        "  report: ./reports//{run_id}.md"
    )
    yard = done(config=config(paths))
    assert shown(folded(yard.history)).keys() == {
        f"out/all/{RUN}/config.yaml", f"out/all/{RUN}/plan.json", f"out/all/{RUN}/metrics.json", f"logs/{RUN}.jsonl",
        f"reports/{RUN}.md", JOB, *(f"out/{RUN}/kept/{task}/stdout" for task in ids(yard).values()),
    }  # fmt: skip
    assert value(yard.history, JOB)["result"]["report"] == f"reports/{RUN}.md"


def test_each_task_is_told_as_the_specifications_document() -> None:
    yard = Yard()
    yard.tool = lambda event: exited(event, 1 if event.data.attempt == 1 else 0, last_lines=["no\tyes"])
    yard.request(plan({"a": [], "b": ["a"]}, a={"inputs": {"args": ["x"], "env": {"A": "b"}}}))
    validate = schema("orchestra/task")
    for count in range(len(yard.history), len(yard.history) + 200):
        for document in task_documents(view(yard).runs[RUN]):
            validate(json.loads(msgspec.json.encode(document)))
        if yard.over() is not None:
            break
        assert yard.step() or yard.wake(), count
    first, second = task_documents(view(yard).runs[RUN])
    assert (first.state, first.retries, second.state) == ("done", 1, "done")
    assert first.inputs.args == ["x"]
    assert [(entry.level, entry.message) for entry in first.logs] == [
        ("info", "attempt 1 begins"), ("error", "attempt 1: exit code 1: no\tyes"), ("info", "attempt 2 begins"),
        ("info", "done"),
    ]  # fmt: skip
    times = first.timestamps
    assert None not in (times.started_at, times.completed_at)
    assert times.created_at <= str(times.started_at) <= str(times.completed_at) <= str(second.timestamps.started_at)


def test_a_later_plan_keeps_what_is_done_and_tells_what_it_replaced() -> None:
    yard = Yard()
    answers = iter(['[{"task_id": "b2", "intent": "other", "tools": ["echo"], "depends_on": ["a"]}]'])
    yard.planner = lambda event: replied(event, next(answers))
    yard.tool = lambda event: exited(
        event, 1 if event.data.task_id == ids(yard).get("b") else 0,
        artifacts=[artifact(event.data.task_id, "stdout")],
    )  # fmt: skip
    yard.request({"a": [], "b": ["a"], "c": ["b"]}, replans=1, config=config(retries=0))
    assert ended(yard) == "done"
    run = view(yard).runs[RUN]
    assert [planned.name for planned in run.planned_tasks] == ["a", "b2"]
    assert [(one.name, one.reason) for one in run.replaced] == [("b", "exit code 1"), ("c", "dependency failed")]
    assert [(one.tasks, one.kept) for one in run.revisions] == [(3, 0), (1, 1)]
    said = value(yard.history, f"{FOLDER}/plan.json")
    assert said["plan_id"] == run.revisions[1].plan_id
    assert said["dag"]["edges"] == [[ids(yard)["a"], ids(yard)["b2"]]]
    assert value(yard.history, f"{FOLDER}/metrics.json")["total_tokens_used"] == 11
    assert len([path for path in shown(folded(yard.history)) if path.endswith("/stdout")]) == 3
    assert value(yard.history, JOB)["progress"] == 1.0


def test_of_many_notes_contacts_and_last_lines_only_so_many_are_remembered() -> None:
    yard = Yard()
    count = NOTES_MAX + 20

    def tool(event: Event) -> TaskExited:
        number = yard.facts
        contact = {"host": f"h{number}.example", "port": 443, "address": "", "verdict": "refused", "reason": "no",
                   "bytes_out": 1, "bytes_in": 2}  # fmt: skip
        twice = [contact, contact]
        return exited(
            event, 1, notes=[f"note {number}", "always"], last_lines=[f"line {number}", "x" * 2_000],
            violations=[f"violation {number}"], contacts=msgspec.convert(twice, type=list[Any]),
        )  # fmt: skip

    yard.tool = lambda event: msgspec.convert(msgspec.to_builtins(tool(event)), TaskExited)
    yard.request({f"t{number}": [] for number in range(count)})
    assert ended(yard) == "failed"
    run = view(yard).runs[RUN]
    assert (len(run.notes.texts), run.notes.more) == (NOTES_MAX, count + 1 - NOTES_MAX)
    assert (len(run.violations.texts), run.violations.more) == (NOTES_MAX, 20)
    assert (len(run.contacts), run.contacts_more) == (NOTES_MAX, 40)
    assert {(one.count, one.bytes_out, one.bytes_in) for one in run.contacts} == {(2, 2, 4)}
    assert len(run.said) == SAID_MAX
    assert max(len(line) for lines in run.said.values() for line in lines) == 400


# --- growth ----------------------------------------------------------------------------------------------------------


def many(count: int) -> Yard:
    """So many runs, one after the other."""
    yard = Yard()
    for number in range(count):
        yard.request({"a": []}, run_id=other(number))
        yard.run(other(number))
    return yard


def test_old_runs_leave_the_state_and_their_documents_have_been_given_out() -> None:
    yard = many(RUNS_KEPT + 5)
    whole = folded([])
    seen: dict[str, bytes] = {}
    for event in yard.history:
        folded([event], whole)
        for path, part in whole.take_retired().items():
            content = part.content()
            seen[path] = content if isinstance(content, bytes) else b""
    state: RunsView = whole._states["run_folders"]
    assert list(state.runs) == [other(number) for number in range(5, RUNS_KEPT + 5)]
    for number in range(5):
        run = other(number)
        assert seen.keys() >= {f"runs/{run}/{name}" for name in ("config.yaml", "plan.json", "report.md")}
        assert json.loads(seen[f"jobs/{run}.json"])["status"] == "complete"
    assert not any(other(5) in path for path in seen)


def test_an_open_run_stays_however_many_end() -> None:
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []}, run_id=other(999))
    held = yard.open(TaskAttemptRequested)[0]
    yard.tool = lambda event: None if event.position == held.position else exited(event)
    for number in range(RUNS_KEPT + 3):
        yard.request({"a": []}, run_id=other(number))
        yard.run(other(number))
    state = view(yard)
    assert other(999) in state.runs
    assert len(state.runs) == RUNS_KEPT + 1


def test_runs_with_many_tasks_leave_sooner() -> None:
    yard = Yard()
    documents = folded([], Documents([RunFolders(tasks=5)]))
    for number, size in enumerate([1, 2, 3, 9]):
        count = len(yard.history)
        yard.request({f"t{task}": [] for task in range(size)}, run_id=other(number))
        yard.run(other(number))
        folded(yard.history[count:], documents)
        expected = [[0], [0, 1], [1, 2], [3]][number]
        assert list(documents._states["run_folders"].runs) == [other(one) for one in expected]


def test_only_what_may_have_changed_is_given_again() -> None:
    yard = done()
    yard.request({"z": []}, run_id=other(7))
    yard.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "new")])
    documents = folded(yard.history)
    assert set(documents.take()) == set(shown(documents))
    assert documents.take() == {}
    count = len(yard.history)
    yard.run(other(7))
    documents.fold(yard.history[count:], sums(yard.history[count:]))
    changed = documents.take()
    task = view(yard).runs[other(7)].planned_tasks[0].task_id
    assert set(changed) == {
        f"runs/{other(7)}/{name}" for name in ("tasks.jsonl", "metrics.json", "report.md", f"artifacts/{task}/new")
    } | {f"jobs/{other(7)}.json"}


def test_retired_documents_that_were_written_as_they_are_are_not_given_again() -> None:
    yard = many(RUNS_KEPT)
    documents = folded(yard.history)
    documents.take()
    documents.settle()
    count = len(yard.history)
    yard.request({"a": []}, run_id=other(5_000))
    yard.run(other(5_000))
    documents.fold(yard.history[count:], sums(yard.history[count:]))
    assert not documents.owing
    assert not any(other(0) in path for path in documents.take())


def test_what_is_owed_stays_owed_until_it_is_settled() -> None:
    yard = many(RUNS_KEPT + 1)
    documents = folded(yard.history)
    assert documents.owing
    first = computed(documents.take())
    assert f"runs/{other(0)}/report.md" in first
    assert documents.owing  # it may not have been written
    documents.doubt()
    again = computed(documents.take())
    assert again.keys() == first.keys()
    documents.settle()
    assert (documents.owing, documents.take()) == (False, {})


def test_a_start_from_the_snapshot_cache_goes_on_with_the_same_documents() -> None:
    yard = Yard()
    yard.tool = lambda event: exited(
        event, 1 if event.data.attempt == 1 else 0, artifacts=[artifact(event.data.task_id, "x")], notes=["n"],
        last_lines=["l"],
    )  # fmt: skip
    yard.request({"a": [], "b": ["a"]})
    yard.run()
    live = folded([])
    for event in yard.history:
        live = copied(folded([event], live))
    assert shown(live) == shown(folded(yard.history))
    assert live._states == folded(yard.history)._states


def test_planner_calls_and_what_they_cost_are_summed() -> None:
    yard = Yard()
    answers = iter(["no plan", '[{"task_id": "a", "intent": "i", "tools": ["echo"]}]'])
    yard.planner = lambda event: replied(event, next(answers))
    yard.request(None)
    assert ended(yard) == "done"
    assert len(yard.of(PlannerCallRequested)) == 2
    run = view(yard).runs[RUN]
    assert (run.asking.calls, run.asking.tokens, run.asking.duration_ms) == (2, 22, 14)
    assert not run.given


def test_the_types_that_it_hears_are_those_of_a_runs_history() -> None:
    """What a run's documents show is heard: nothing else in the log leads to another document."""
    yard = done()
    unheard = {event.type for event in yard.history if type(event.data) not in RunFolders.hears}
    of_runs = {name for name in unheard if name.split(".")[0] in ("run", "plan", "planner", "task", "tasks")}
    assert of_runs == set()
    assert {RunBegun, TaskFinished} <= RunFolders.hears
    assert TimerRequested not in RunFolders.hears


def test_of_a_long_run_each_byte_of_the_log_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so are plan, configuration and artifacts: what is written grows with the run, not with its square."""
    yard = Yard()
    blobs = {sha256(b"said").hexdigest(): b"said"}
    yard.tool = lambda event: exited(event, artifacts=[artifact(event.data.task_id, "stdout", b"said")])
    yard.request({f"t{number}": [] for number in range(600)}, config=config(workers=8))
    assert ended(yard) == "done"
    written: Counter[str] = Counter()

    class Counting(Tree):
        def replace(self, path: str, pieces: Iterable[bytes], *, sync: bool = True, own: int = 0) -> Mark:
            content = b"".join(pieces)
            written[path] += len(content)
            return super().replace(path, [content], sync=sync, own=own)

        def extend(self, path: str, mark: Mark, pieces: Iterable[bytes]) -> Mark | None:
            content = b"".join(pieces)
            written[path] += len(content)
            return super().extend(path, mark, [content])

    class Blobs:
        def get(self, sha256: str) -> bytes:
            return blobs[sha256]

    monkeypatch.setattr(disk, "Tree", Counting)
    desk, documents = Desk(tmp_path, Blobs()), folded([])
    for start in range(0, len(yard.history), 100):
        folded(yard.history[start : start + 100], documents)
        desk.write(documents.take())
        documents.settle()
    for name in ("tasks.jsonl", "plan.json", "config.yaml"):
        assert written[f"{FOLDER}/{name}"] == (tmp_path / FOLDER / name).stat().st_size
    copies = [count for path, count in written.items() if path.endswith("/stdout")]
    assert (len(copies), set(copies)) == (600, {4})
    assert not [found for _, found in desk.differences(documents.every()) if found is not None]
