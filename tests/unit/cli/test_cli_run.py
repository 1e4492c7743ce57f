"""``pmagent run``, ``runs`` and ``cancel`` where no sandbox is needed: what is said before, dry runs, plans only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from pmagent.cli import job_screen
from pmagent.cli.jobs import runs
from pmagent.jobs import catalogue, following
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import Ran, invoke, pmagent
from tests.support.effort import some
from tests.support.hostile import CORPUS, assert_harmless
from tests.support.logs import locked

PLAN = """
- {task_id: hello, intent: say hello, tools: [echo]}
- {task_id: look, intent: x, tools: [ls], depends_on: [hello]}
"""


def run(workspace: Path, *arguments: str, plan: str = PLAN) -> Ran:
    """``pmagent run`` with this plan."""
    (workspace / "plan.yaml").write_text(plan)
    return pmagent(workspace, "run", "Look around", "--plan", str(workspace / "plan.yaml"), *arguments)


def recorded(workspace: Path) -> bool:
    """Whether anything was."""
    return Layout(workspace).log.exists()


@each("arguments, code, said", [
    (("--plan-only", "--dry-run"), 2, "--dry-run has no meaning"),
    (("--plan-only", "--replan", "1"), 2, "--replan has no meaning"),
    (("--plan-only", "--detach"), 2, "--detach has no meaning"),
    (("--config", "-", "--plan", "-"), 2, "cannot both be stdin"),
    (("--config", "gone.yaml"), 2, "gone.yaml"),
    (("--plan", "gone.yaml"), 2, "gone.yaml"),
    (("--plan", "/"), 2, "directory"),
    (("--concurrency", "0"), 2, "--concurrency is 0"),
    (("--concurrency", "many"), 2, "--concurrency"),
    (("--retries", "-1"), 2, "--retries is -1"),
    (("--action", "anything"), 2, "--action"),
    (("--out", ".git/runs"), 2, "where nothing may be left"),
])
def test_what_contradicts_itself_or_is_not_there_is_a_usage_error(
    workspace: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = run(workspace, *arguments)
    assert (done.code, done.out) == (code, b"")
    assert said in done.errors
    assert len(done.errors.splitlines()) == 2, "what happened, and what to do"
    assert not recorded(workspace)


@each("plan, code, kind", [
    ("- {task_id: a, intent: x, tools: [curl]}", 7, "security"),
    ("- {task_id: a, intent: x, tools: [echo], constraints: {sandbox: {net: allow}}}", 7, "security"),
    ("- {task_id: a, intent: x, tools: [echo], depends_on: [b]}", 2, "usage"),
    ("{}", 2, "usage"),
    ("- x: [", 2, "usage"),
    ("", 2, "usage"),
])
def test_a_plan_that_cannot_be_is_refused_and_not_recorded(workspace: Path, plan: str, code: int, kind: str) -> None:
    done = run(workspace, "--format", "json", plan=plan)
    assert done.code == code
    assert done.document["error"]["kind"] == kind
    assert not recorded(workspace)


def test_a_plan_that_is_too_large_is_not_read_to_its_end(workspace: Path) -> None:
    done = pmagent(workspace, "run", "x", "--plan", "/dev/zero")
    assert done.code == 2
    assert "larger than" in done.errors


def test_a_dry_run_goes_through_all_of_it(workspace: Path) -> None:
    done = run(workspace, "--dry-run", "--format", "json")
    assert done.code == 0, done.errors
    assert (done.document["state"], done.document["done"]) == ("done", 2)
    text = pmagent(workspace, "runs", done.document["run_id"][:8]).text
    assert "simulated" in text
    assert "intent  Look around" in text


def test_that_unmasked_logs_are_not_to_be_had_is_said(workspace: Path) -> None:
    (workspace / "orchestra.config.yaml").write_text('version: "1.0"\nsecurity: {redact_secrets: false}\n')
    done = run(workspace, "--plan-only")
    assert done.code == 0
    assert "warning: security.redact_secrets is false" in done.errors


def test_a_secret_in_the_intent_does_not_get_into_the_log(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2-hunter2")
    (workspace / "plan.yaml").write_text(PLAN)
    done = pmagent(workspace, "run", "use hunter2-hunter2-hunter2", "--plan", str(workspace / "plan.yaml"), "--dry-run")
    assert done.code == 0, done.errors
    assert "use ***REDACTED***" in pmagent(workspace, "runs").text
    assert "hunter2" not in pmagent(workspace, "log", "tail", "-n", "all", "--format", "json").text


def test_tools_get_the_mask_for_a_secret_in_the_plan(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2-hunter2")
    plan = workspace / "secret.yaml"
    plan.write_text('- {task_id: a, intent: x, tools: [echo], inputs: {args: ["hunter2-hunter2-hunter2"]}}')
    told = "the plan holds secrets, which are masked: tools get ***REDACTED*** in their place"
    assert told in pmagent(workspace, "run", "x", "--plan", str(plan), "--dry-run").errors
    assert told not in run(workspace, "--dry-run").errors


def test_the_latest_runs_are_found_however_much_came_since(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "WINDOW", 3)
    ids = [run(workspace, "--plan-only", "--format", "json").document["run_id"] for _ in range(4)]

    def listed(*arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pmagent(workspace, "runs", *arguments, "--format", "json").document["runs"]
        return found

    assert [one["run_id"] for one in listed()] == ids[::-1]
    assert [one["run_id"] for one in listed("-n", "2")] == ids[:1:-1]
    assert {one["state"] for one in listed()} == {"planned"}
    for run_id in ids:
        assert pmagent(workspace, "runs", run_id, "--format", "json").document["run_id"] == run_id


def test_the_beginning_of_two_ids_names_none(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["0b0c7a52-3f7e-4c1d-9a55-000000000001", "0b0c7a52-3f7e-4c1d-9a55-000000000002"])
    monkeypatch.setattr("pmagent.cli.run.job_id", lambda _: next(ids))
    for _ in range(2):
        assert run(workspace, "--plan-only").code == 0
    done = pmagent(workspace, "runs", "0b0c7a52")
    assert done.code == 1
    assert "2 runs have ids that begin with '0b0c7a52'" in done.errors
    assert pmagent(workspace, "cancel", "0b0c7a52").code == 1
    assert pmagent(workspace, "runs", "0B0C7A52-3f7e-4c1d-9a55-000000000002").code == 0


def test_a_run_that_is_over_is_not_cancelled(workspace: Path) -> None:
    run_id = run(workspace, "--plan-only", "--format", "json").document["run_id"]
    before = pmagent(workspace, "log", "stat", "--format", "json").document
    done = pmagent(workspace, "cancel", run_id)
    assert done.code == 1
    assert "the run is planned already" in done.text
    assert pmagent(workspace, "log", "stat", "--format", "json").document == before, "nothing was recorded"


def test_a_run_in_another_shell_is_waited_for_and_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(job_screen, "REST_SECONDS", 0.0)
    Layout(workspace).home.mkdir(parents=True)
    with locked(workspace, "pid 1, orchestra.run"):
        done = run(workspace)
    assert (done.code, done.out) == (5, b"")
    assert "pid 1, orchestra.run" in done.errors.splitlines()[0]
    assert "waiting for its end" in done.errors.splitlines()[0]
    assert "pmagent up" in done.errors.splitlines()[-1]


def test_ids_are_completed_from_the_log(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = run(workspace, "--plan-only", "--format", "json").document["run_id"]
    monkeypatch.setenv("PMAGENT_WORKSPACE", str(workspace))
    parameter = runs.params[0]
    context = click.Context(runs)
    assert [item.value for item in parameter.shell_complete(context, run_id[:3])] == [run_id]
    assert parameter.shell_complete(context, "x") == []
    monkeypatch.setenv("PMAGENT_WORKSPACE", str(workspace / "docs"))
    assert parameter.shell_complete(context, "") == []


@pytest.mark.parametrize("name", some(list(CORPUS), 6))
def test_hostile_text_is_shown_and_does_nothing(workspace: Path, name: str) -> None:
    plan = [{"task_id": "a", "intent": CORPUS[name][:1000], "tools": ["echo"]}]
    (workspace / "plan.json").write_text(json.dumps(plan))
    intent = CORPUS[name][:1000].replace("\0", "")
    done = pmagent(workspace, "run", intent, "--plan", str(workspace / "plan.json"), "--dry-run")
    assert done.code == 0, done.errors
    listed = pmagent(workspace, "runs")
    one = pmagent(workspace, "runs", done.lines[-1].split()[-1])
    for shown in (done, listed, one):
        assert_harmless(shown.out)
        assert_harmless(shown.err)
    assert len(listed.lines) == 2


def test_a_plans_name_that_is_hostile_does_nothing(tmp_path: Path) -> None:
    done = invoke("run", "x", "--plan", str(tmp_path / "\x1b[31mgone\n"), environ={"PMAGENT_WORKSPACE": str(tmp_path)})
    assert done.code == 2
    assert_harmless(done.err)
