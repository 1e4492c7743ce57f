"""The content of a run's documents, as a function of its events."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pmagent.contracts.effect import EffectInterrupted
from pmagent.contracts.orchestra import UNENFORCED, PlanAnswer
from pmagent.contracts.orchestra_events import (
    PlannerCallRequested,
    RunEnded,
    RunRequested,
    TaskAttemptRequested,
    TaskExited,
)
from pmagent.events.event import Event
from pmagent.projections.runs.numbers import job, task_documents
from pmagent.projections.views.runs import NOTES_MAX, SAID_MAX
from tests.support.orchestra import RUN, Harness, config, exited, plan, replied
from tests.support.run_folders import (
    FOLDER,
    JOB,
    artifact,
    done,
    ended,
    folded,
    ids,
    log_lines,
    schema,
    shown,
    value,
    view,
)


def test_the_plan_is_the_specifications_answer_with_dependencies() -> None:
    harness = done()
    said = msgspec.convert(value(harness.history, f"{FOLDER}/plan.json"), PlanAnswer)
    name = {task: name for name, task in ids(harness).items()}
    assert [[name[one] for one in edge] for edge in said.dag.edges] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert [name[task.task_id] for task in said.tasks] == ["a", "b", "c"]


def test_metrics_count_what_happened(harness: Harness) -> None:
    failing = {"b": 1, "c": 5}

    def tool(event: Event) -> TaskExited:
        name = {task: name for name, task in ids(harness).items()}[event.data.task_id]
        code = 1 if event.data.attempt <= failing.get(name, 0) else 0
        return exited(event, code, artifacts=[artifact(event.data.task_id, "stdout", b"12345")])

    harness.tool = tool
    harness.request({"a": [], "b": [], "c": [], "d": ["c"]})
    assert ended(harness) == "failed"
    said = value(harness.history, f"{FOLDER}/metrics.json")
    last = harness.events(RunEnded)[0]
    assert said["run_id"] == RUN
    assert (said["started_at"], said["completed_at"]) == (harness.events(RunRequested)[0].time, last.time)
    assert 6_000 <= said["total_duration_ms"] < 6_100
    counted = {name: said[f"tasks_{name}"] for name in ("total", "succeeded", "failed", "retried")}
    assert counted == {"total": 4, "succeeded": 2, "failed": 2, "retried": 2}
    assert said["avg_task_duration_ms"] == 500.0  # 250, 500 and 750 of three tasks that ran
    assert said["artifacts_total_bytes"] == 15
    assert said["total_tokens_used"] is None
    assert [(task["name"], task["retry_count"], task["exit_code"], task["state"]) for task in said["tasks"]] == [
        ("a", 0, 0, "done"), ("b", 1, 0, "done"), ("c", 2, 1, "failed"), ("d", 0, None, "failed"),
    ]  # fmt: skip
    assert value(harness.history, JOB)["error"] == {"code": "failed", "detail": "2 of 4 tasks failed"}


def test_what_an_orderly_stop_cuts_off_uses_up_no_retry(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []})
    for reason, used in (("stop", 0), ("crash", 1), ("stop", 1)):
        attempt = harness.open(TaskAttemptRequested)[0]
        harness.end(attempt, EffectInterrupted(request=attempt.position, reason=reason))
        harness.start()
        harness.observe("NORMAL")
        while not harness.open(TaskAttemptRequested):
            assert harness.wake()
        assert value(harness.history, f"{FOLDER}/metrics.json")["tasks"][0]["retry_count"] == used
    assert view(harness).jobs[RUN].tasks[0].attempts == 4


def test_every_line_of_the_log_is_of_the_run_and_says_who_says_it() -> None:
    harness = done()
    lines = log_lines(harness.history)
    assert {line["trace_id"] for line in lines} == {RUN}
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)
    of_task = [(line["component"], line["message"]) for line in lines if line["task_id"] == ids(harness)["a"]]
    assert of_task == [("L2", "assigned"), ("L3", "attempt 1 begins"), ("L3", "attempt 1 exited"), ("L3", "done")]
    assert lines[0]["message"] == "the run is asked for"
    assert lines[-1]["message"] == "the run has ended: done"
    assert lines[5]["payload"]["tool"] == "echo"


def test_the_log_holds_what_is_at_least_as_grave_as_configured() -> None:
    ranks = ["debug", "info", "warn", "error"]
    found: dict[str, list[dict[str, Any]]] = {}
    for level in ranks:
        harness = Harness()
        harness.tool = lambda event: exited(event, 1, last_lines=["no"])
        harness.request({"a": [], "b": ["a"]}, config=config(f"telemetry:\n  level: {level}"))
        assert ended(harness) == "failed"
        found[level] = log_lines(harness.history)
    for number, level in enumerate(ranks):
        assert found[level] == [line for line in found["debug"] if ranks.index(line["level"]) >= number]
        assert len(found[level]) > (len(found[ranks[number + 1]]) if number < 3 else 0)


def test_documents_lie_where_the_configuration_says() -> None:
    paths = (
        "paths:\n  runs: out/all\n  logs: logs/{run_id}.jsonl\n  artifacts: out/{run_id}/kept\n"
        "  report: ./reports//{run_id}.md"
    )
    harness = done(config=config(paths))
    assert shown(folded(harness.history)).keys() == {
        f"out/all/{RUN}/config.yaml", f"out/all/{RUN}/plan.json", f"out/all/{RUN}/metrics.json", f"logs/{RUN}.jsonl",
        f"reports/{RUN}.md", JOB, *(f"out/{RUN}/kept/{task}/stdout" for task in ids(harness).values()),
    }  # fmt: skip
    assert value(harness.history, JOB)["result"]["report"] == f"reports/{RUN}.md"


def test_each_task_is_told_as_the_specifications_document(harness: Harness) -> None:
    harness.tool = lambda event: exited(event, 1 if event.data.attempt == 1 else 0, last_lines=["no\tyes"])
    harness.request(plan({"a": [], "b": ["a"]}, a={"inputs": {"args": ["x"], "env": {"A": "b"}}}))
    validate = schema("orchestra/task")
    for count in range(len(harness.history), len(harness.history) + 200):
        for document in task_documents(view(harness).jobs[RUN]):
            validate(json.loads(msgspec.json.encode(document)))
        if harness.over() is not None:
            break
        assert harness.step() or harness.wake(), count
    first, second = task_documents(view(harness).jobs[RUN])
    assert (first.state, first.retries, second.state) == ("done", 1, "done")
    assert first.inputs.args == ["x"]
    assert [(entry.level, entry.message) for entry in first.logs] == [
        ("info", "attempt 1 begins"), ("error", "attempt 1: exit code 1: no\tyes"), ("info", "attempt 2 begins"),
        ("info", "done"),
    ]  # fmt: skip
    times = first.timestamps
    assert None not in (times.started_at, times.completed_at)
    assert times.created_at <= str(times.started_at) <= str(times.completed_at) <= str(second.timestamps.started_at)


def test_a_later_plan_keeps_what_is_done_and_tells_what_it_replaced(harness: Harness) -> None:
    answers = iter(['[{"task_id": "b2", "intent": "other", "tools": ["echo"], "depends_on": ["a"]}]'])
    harness.planner = lambda event: replied(event, next(answers))
    harness.tool = lambda event: exited(
        event, 1 if event.data.task_id == ids(harness).get("b") else 0,
        artifacts=[artifact(event.data.task_id, "stdout")],
    )  # fmt: skip
    harness.request({"a": [], "b": ["a"], "c": ["b"]}, replans=1, config=config(retries=0))
    assert ended(harness) == "done"
    run = view(harness).jobs[RUN]
    assert [planned.name for planned in run.planned_tasks] == ["a", "b2"]
    assert [(one.name, one.reason) for one in run.replaced] == [("b", "exit code 1"), ("c", "dependency failed")]
    assert [(one.tasks, one.kept) for one in run.revisions] == [(3, 0), (1, 1)]
    said = value(harness.history, f"{FOLDER}/plan.json")
    assert said["plan_id"] == run.revisions[1].plan_id
    assert said["dag"]["edges"] == [[ids(harness)["a"], ids(harness)["b2"]]]
    assert value(harness.history, f"{FOLDER}/metrics.json")["total_tokens_used"] == 11
    assert len([path for path in shown(folded(harness.history)) if path.endswith("/stdout")]) == 3
    assert value(harness.history, JOB)["progress"] == 1.0


def test_of_many_notes_contacts_and_last_lines_only_so_many_are_remembered(harness: Harness) -> None:
    count = NOTES_MAX + 20

    def tool(event: Event) -> TaskExited:
        number = harness.facts
        contact = {"host": f"h{number}.example", "port": 443, "address": "", "verdict": "refused", "reason": "no",
                   "bytes_out": 1, "bytes_in": 2}  # fmt: skip
        twice = [contact, contact]
        return exited(
            event, 1, notes=[f"note {number}", f"{UNENFORCED}always"], last_lines=[f"line {number}", "x" * 2_000],
            violations=[f"violation {number}"], contacts=msgspec.convert(twice, type=list[Any]),
        )  # fmt: skip

    harness.tool = lambda event: msgspec.convert(msgspec.to_builtins(tool(event)), TaskExited)
    harness.request({f"t{number}": [] for number in range(count)})
    assert ended(harness) == "failed"
    run = view(harness).jobs[RUN]
    assert (len(run.notes.texts), run.notes.more) == (NOTES_MAX, count + 1 - NOTES_MAX)
    assert (len(run.violations.texts), run.violations.more) == (NOTES_MAX, 20)
    assert (len(run.contacts), run.contacts_more) == (NOTES_MAX, 40)
    assert {(one.count, one.bytes_out, one.bytes_in) for one in run.contacts} == {(2, 2, 4)}
    assert len(run.last_lines) == SAID_MAX
    assert max(len(line) for lines in run.last_lines.values() for line in lines) == 400


def test_planner_calls_and_what_they_cost_are_summed(harness: Harness) -> None:
    answers = iter(["no plan", '[{"task_id": "a", "intent": "i", "tools": ["echo"]}]'])
    harness.planner = lambda event: replied(event, next(answers))
    harness.request(None)
    assert ended(harness) == "done"
    assert len(harness.of(PlannerCallRequested)) == 2
    run = view(harness).jobs[RUN]
    assert (run.asking.calls, run.asking.tokens, run.asking.duration_ms) == (2, 22, 14)
    assert not run.given


def test_a_job_whose_tasks_ended_before_it_began_is_queued_and_has_no_progress() -> None:
    run = view(done()).jobs[RUN]
    cancelled = msgspec.structs.replace(run, begun="", doing="stopping")
    said = json.loads(job(cancelled))
    assert (said["status"], said["progress"]) == ("queued", 0.0)
