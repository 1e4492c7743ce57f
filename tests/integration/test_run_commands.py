"""``pmagent run``, ``runs`` and ``cancel`` as people and programs use them, with a daemon and without, into pipes."""

from __future__ import annotations

import json
import signal
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastjsonschema
import pytest
from msgspec import structs, to_builtins

from pmagent.contracts.generate import FOLDER
from pmagent.contracts.orchestra import TaskOptions
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import opened
from pmagent.jobs.kinds import RUNS
from pmagent.orchestra.repeating import repeated
from pmagent.orchestra.request import BadRun
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment, pmagent, spawn
from tests.support.daemons import Daemon, running
from tests.support.sandboxes import needs_sandbox
from tests.support.started import LONG, QUICK, daemon, in_workspace, latest, started

__all__ = ["daemon"]


CHANGES = ("log", "tail", "-n", "all", "-f", "--type", "task.assigned", "--format", "json")
pytestmark = [needs_sandbox, pytest.mark.slow]


@cache
def task_validator() -> Any:
    schema = json.loads((FOLDER / "orchestra" / "v1" / "task.json").read_text())
    return fastjsonschema.compile(schema, use_default=False)


def run(workspace: Path, *arguments: str) -> Ran:
    """``pmagent run`` with the plan of the workspace."""
    return spawn("run", "Look around", "--plan", "plan.yaml", *arguments, cwd=workspace)


def test_a_run_tells_of_each_task_and_of_its_end(workspace: Path, daemon: Daemon | None) -> None:
    done = run(in_workspace(workspace, QUICK))
    assert done.code == 0, done.errors
    said = done.errors
    assert said.index("hello  running") < said.index("hello  done") < said.index("look  running")
    assert "2 of 2 tasks done" in done.text
    run_id = done.lines[-1].split()[-1]
    assert f"report  runs/{run_id}/report.md" in done.text
    assert latest(workspace)["run_id"] == run_id
    carried = pmagent(workspace, "log", "tail", "-n", "all", "--type", "daemon.started", "data.surface=orchestra.run")
    assert bool(daemon) == (carried.out == b""), "whoever holds the log carries the run"


@pytest.mark.usefixtures("daemon")
def test_as_json_there_is_one_document_on_stdout(workspace: Path) -> None:
    done = run(in_workspace(workspace, QUICK), "--format", "json")
    assert done.code == 0, done.errors
    found = done.document
    assert (found["state"], found["exit_code"], found["done"], found["failed"]) == ("done", 0, 2, 0)
    assert [(task["name"], task["state"], task["attempts"]) for task in found["tasks"]] == [
        ("hello", "done", 1), ("look", "done", 1),
    ]
    assert found["folder"] == f"runs/{found['run_id']}"
    assert "look  done" in done.errors, "progress is told all the same"


def test_the_documents_are_written_when_the_command_ends(workspace: Path, daemon: Daemon | None) -> None:
    found = run(in_workspace(workspace, QUICK), "--format", "json").document
    folder = workspace / found["folder"]
    assert "hello" in (folder / "artifacts" / found["tasks"][1]["task_id"] / "stdout").read_text()
    assert found["run_id"] in (workspace / found["report"]).read_text()
    if not daemon:
        assert pmagent(workspace, "rebuild", "--check").code == 0


def test_the_manuals_plan_does_what_it_says(workspace: Path) -> None:
    manual = (Path(__file__).resolve().parents[2] / "docs" / "orchestra.md").read_text("utf-8")
    in_workspace(workspace, manual.split("```yaml\n")[1].split("```")[0])
    done = run(workspace, "--format", "json")
    assert done.code == 0, done.errors
    page = workspace / done.document["folder"] / "artifacts" / done.document["tasks"][1]["task_id"] / "stdout"
    assert page.read_text().startswith("# What is here\nshare:\n")


@pytest.mark.usefixtures("daemon")
def test_a_failed_task_fails_the_run_and_is_named_with_its_reason(workspace: Path) -> None:
    bad = '[{"task_id": "bad", "intent": "x", "tools": ["sh"], "inputs": {"args": ["-c", "echo no luck >&2; exit 3"]}}]'
    done = run(in_workspace(workspace, bad), "--retries", "0")
    assert done.code == 1
    assert "✗ bad: exit code 3: no luck" in done.text


@pytest.mark.usefixtures("daemon")
def test_plan_only_shows_the_order_and_runs_nothing(workspace: Path) -> None:
    done = run(in_workspace(workspace, QUICK), "--plan-only")
    assert done.code == 0, done.errors
    assert [line.split() for line in done.lines[1:3]] == [["1", "hello"], ["2", "look"]]
    run_id = done.lines[-1].split()[-1]
    assert sorted(path.name for path in (workspace / "runs" / run_id).iterdir()) == [
        "config.yaml", "plan.json", "report.md",
    ]
    assert pmagent(workspace, "log", "tail", "-n", "all", "--type", "task.*").out == b""


@pytest.mark.usefixtures("daemon")
def test_a_plan_may_come_from_stdin_and_a_run_go_to_another_folder(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    words = ["run", "Look", "--plan", "-", "--out", "./elsewhere", "--format", "json"]
    done = warm.run(
        [*PMAGENT, *words], cwd=workspace, env=clean_environment(), input=(workspace / "plan.yaml").read_bytes(),
        capture_output=True, check=False, timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["folder"] == f"elsewhere/{found['run_id']}"
    assert (workspace / found["report"]).is_file()


def test_a_run_that_the_mode_forbids_is_refused_with_what_mends_it(workspace: Path, daemon: Daemon | None) -> None:
    path = workspace / "share" / "REALITY_GREEN_SUMMARY.json"
    content = json.loads(path.read_text())
    content["checks"][0]["passed"] = False
    path.write_text(json.dumps(content))
    in_workspace(workspace, QUICK)
    if daemon:
        assert spawn("oa", "snapshot", cwd=workspace).code == 0
    refused = run(workspace)
    assert refused.code == 1, refused.errors
    assert "✗ refused: nothing was run" in refused.text
    assert "feature_work" in refused.text
    assert "mend: " in refused.text
    mending = run(workspace, "--action", "remediation")
    assert mending.code == 0, mending.text


def test_a_detached_run_goes_on_in_the_daemon_is_listed_and_can_be_cancelled(workspace: Path) -> None:
    in_workspace(workspace, LONG)
    with running(workspace):
        left = run(workspace, "--detach")
        assert left.code == 0, left.errors
        (run_id,) = left.lines
        with started(workspace, *CHANGES) as tail:
            assert tail.process.stdout is not None
            while b'"task.assigned"' not in tail.process.stdout.readline():
                pass
        shown = pmagent(workspace, "runs", run_id[:6])
        assert "▸ open" in shown.text
        assert latest(workspace)["state"] == "open"
        assert next(line for line in shown.lines if " first " in line).split()[2] in ("running", "done")

        cancelled = pmagent(workspace, "cancel", run_id[:6].upper())
        assert (cancelled.code, "accepted" in cancelled.text) == (0, True)
        ended = spawn(
            "log", "tail", "-f", "--after", "1", "--exit-on", "run.ended", "--timeout", "30s", "--type", "run.ended",
            cwd=workspace,
        )
        assert ended.code == 0
        again = pmagent(workspace, "cancel", run_id, "--format", "json")
        assert again.code == 1
        assert again.document == {"run_id": run_id, "accepted": False, "text": "the run is cancelled already"}
    assert latest(workspace)["state"] == "cancelled"


def test_a_detached_run_is_followed_with_the_screen_and_the_exit_code_of_a_run(workspace: Path) -> None:
    in_workspace(workspace, LONG)
    with running(workspace):
        (run_id,) = run(workspace, "--detach").lines
        with started(workspace, "run", "--follow", run_id[:8], terminal=(100, 24)) as left:
            left.wait(lambda shown: "nap    running" in shown, "the long task")
            left.type("\x03")
            assert left.end().code == 130
        assert latest(workspace)["state"] == "open"
        with started(workspace, "runs", run_id, "--watch", terminal=(100, 24)) as followed:
            followed.wait(lambda shown: "nap    running" in shown, "the long task")
            assert pmagent(workspace, "cancel", run_id).code == 0
            done = followed.end()
    assert done.code == 1
    assert "✗ cancelled" in done.text


PARTS = """
- {task_id: one, intent: x, tools: [echo], inputs: {args: [made by one]}}
- {task_id: two, intent: x, tools: [cat], depends_on: [one], inputs: {args: [/inputs/one/stdout, wanted]}}
"""


@pytest.mark.usefixtures("daemon")
def test_a_run_is_repeated_whole_or_for_what_failed(workspace: Path) -> None:
    in_workspace(workspace, PARTS)
    assert run(workspace, "--retries", "0").code == 1
    first = latest(workspace)["run_id"]
    (workspace / "wanted").write_text("and there\n")
    whole = pmagent(workspace, "rerun", first, "--json")
    assert whole.code == 0, whole.errors
    assert [task["attempts"] for task in whole.document["tasks"]] == [1, 1]
    done = pmagent(workspace, "rerun", first[:8], "--failed", "--json")
    assert done.code == 0, done.errors
    again = done.document["run_id"]
    assert [task["attempts"] for task in done.document["tasks"]] == [0, 1]
    shown = pmagent(workspace, "logs", again)
    assert "made by one\nand there\n" in shown.text
    assert f"taken from run {first[:8]}: one" in shown.errors
    assert f"taken from run {first[:8]}" in pmagent(workspace, "runs", again).text
    assert pmagent(workspace, "runs", again, "--json").document["repeats"] == first
    nothing = pmagent(workspace, "rerun", again, "--failed")
    assert nothing.code == 1, nothing.text
    assert "every task" in nothing.errors
    ended = spawn("log", "tail", "-n", "all", "--type", "task.finished", cwd=workspace)
    assert [line.split("  ")[-1].split(": ")[0] for line in ended.lines] == [
        "one done, 1 attempt(s)", "two failed, 1 attempt(s)",
        "one done, 1 attempt(s)", "two done, 1 attempt(s)", "two done, 1 attempt(s)",
    ]  # fmt: skip
    checks = ("log", "verify"), ("replay",), ("rebuild", "--check")
    assert [pmagent(workspace, *check).code for check in checks] == [0, 0, 0]


def test_a_forged_repetition_is_refused(workspace: Path) -> None:
    in_workspace(workspace, PARTS)
    assert run(workspace, "--retries", "0").code == 1
    with opened(Layout(workspace)) as jobs:
        first = Catalogue(Layout(workspace)).listed(RUNS, 1).entries[0]
        asked = repeated(jobs, first.position, str(uuid4()), failed=True)
    assert asked.earlier is not None
    both = {**asked.earlier.done, "two": 1}, {"one": 1}
    forgeries: list[dict[str, Any]] = [{"earlier": structs.replace(asked.earlier, done=done)} for done in both]
    for forgery in (*forgeries, {"options": {"two": TaskOptions(continue_on_error=True)}}):
        forged = structs.replace(asked, **forgery)
        with pytest.raises(BadRun, match="does not repeat"):
            call(workspace, "orchestra.run", {"request": asked.run_id, **to_builtins(forged)})
    assert latest(workspace)["run_id"] == first.job_id


def test_a_detached_run_that_is_refused_says_so(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    (workspace / "share" / "SSOT_SURFACE_V17.json").unlink()
    with running(workspace):
        done = run(workspace, "--detach", "--format", "json")
    assert done.code == 1
    assert done.document["state"] == "refused"


@pytest.mark.usefixtures("daemon")
def test_a_run_whose_time_is_over_is_ended(workspace: Path) -> None:
    # A task that is to be done before would have to be quick.
    late = LONG.replace("- {task_id: first, intent: be quick, tools: [echo], inputs: {args: [hello]}}\n", "")
    late = late.replace("depends_on: [first], ", "")
    done = run(in_workspace(workspace, late, "policies: {max_total_duration_sec: 1}\n"))
    assert done.code == 6, done.errors
    assert "✗ timed_out: 0 of 2 tasks done" in done.text
    assert "the run's time of 1 s is over" in done.text


def test_without_a_daemon_nothing_can_be_left_to_it(workspace: Path) -> None:
    done = run(in_workspace(workspace, QUICK), "--detach")
    assert (done.code, done.out) == (5, b"")
    assert "pmagent up" in done.errors
    assert not Layout(workspace).log.exists(), "nothing was recorded"


def test_one_run_is_shown_as_the_contracts_task_documents(workspace: Path) -> None:
    run_id = run(in_workspace(workspace, QUICK), "--format", "json").document["run_id"]
    found = pmagent(workspace, "runs", run_id[:8], "--format", "json").document
    assert [task["state"] for task in found["tasks"]] == ["done", "done"]
    for task in found["tasks"]:
        task_validator()(task)
        assert task["timestamps"]["started_at"] <= task["timestamps"]["completed_at"]
        assert {artifact["path"].rpartition("/")[2] for artifact in task["artifacts"]} == {"stdout", "stderr"}


def test_a_run_that_a_killed_process_left_is_taken_up_and_can_be_cancelled_without_a_daemon(workspace: Path) -> None:
    in_workspace(workspace, LONG)
    with started(workspace, "run", "Sleep", "--plan", "plan.yaml") as killed:
        killed.until("nap  running")
        killed.send(signal.SIGKILL)
        killed.end()
    left = latest(workspace)
    assert left["state"] == "open"
    assert "nobody carries it now" in pmagent(workspace, "runs", left["run_id"]).text

    in_workspace(workspace, QUICK)
    done = run(workspace)
    assert done.code == 0, done.errors
    assert f"taken up while this one runs: {left['run_id'][:8]}" in done.errors
    assert pmagent(workspace, "runs", left["run_id"], "--format", "json").document["state"] == "open"

    cancelled = pmagent(workspace, "cancel", left["run_id"][:8])
    assert cancelled.code == 0, cancelled.errors
    assert pmagent(workspace, "runs", left["run_id"], "--format", "json").document["state"] == "cancelled"
    assert pmagent(workspace, "rebuild", "--check").code == 0


def test_runs_lists_the_newest_first_and_no_more_than_wanted(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    ids = [run(workspace, "--plan-only", "--format", "json").document["run_id"] for _ in range(3)]
    listed = pmagent(workspace, "runs", "-n", "2", "--format", "json").document["runs"]
    assert [one["run_id"] for one in listed] == [ids[2], ids[1]]
    assert [line.split()[0] for line in pmagent(workspace, "runs").lines[1:]] == [one[:8] for one in reversed(ids)]


def test_runs_are_told_apart_by_as_much_of_the_id_as_is_needed(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    run(workspace, "--plan-only")
    nobody = pmagent(workspace, "runs", "ffffffff-ffff-ffff-ffff-ffffffffffff")
    assert nobody.code == 1
    assert "there is no run" in nobody.errors
    assert pmagent(workspace, "runs", "latest").code == 2
    assert pmagent(workspace, "cancel", "latest").code == 2


def test_where_there_is_no_log_there_are_no_runs(tmp_path: Path) -> None:
    for words in (("runs",), ("runs", "ab"), ("cancel", "ab")):
        done = pmagent(tmp_path, *words)
        assert (done.code, done.out) == (1, b"")
        assert "there is no log" in done.errors
    (tmp_path / "plan.yaml").write_text(QUICK)
    done = spawn("run", "x", "--plan", "plan.yaml", cwd=tmp_path)
    assert done.code == 1
    assert "is no workspace" in done.errors
    assert not (tmp_path / ".pmagent").exists()
