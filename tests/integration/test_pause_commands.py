"""``pmagent pause`` and ``resume``: a real run waits through a pause and a restart, and then goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from pmagent.oa.reasoning import build_envelope
from pmagent.oa.reasoning import run as reason
from pmagent.service.client import CONNECT_SECONDS
from pmagent.service.operations import call
from pmagent.service.pausing import Paused
from pmagent.service.wire import RemoteError
from tests.conftest import fresh_example
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent, spawn
from tests.support.daemons import running

PLAN = """
- task_id: say
  intent: Say something
  tools: [echo]
  inputs: {args: [hello]}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = fresh_example(tmp_path / "workspace")
    (made / "plan.yaml").write_text(PLAN)
    return made


def test_a_pause_and_its_end_are_told_and_stand_in_the_status(workspace: Path) -> None:
    asked = ("--operator", "ada", "--format", "json")
    paused = pmagent(workspace, "pause", "--reason", "rewiring", *asked)
    assert (paused.code, paused.document["operator_id"], paused.document["reason"]) == (0, "ada", "rewiring")
    assert "already" in pmagent(workspace, "pause", "--operator", "ada").text
    status = pmagent(workspace, "status", "--format", "json").document
    assert (status["paused"]["operator_id"], status["paused"]["since"]) == ("ada", paused.document["since"])
    assert "paused by ada" in pmagent(workspace, "status").text
    resumed = pmagent(workspace, "resume", *asked).document
    assert (resumed["paused"], resumed["since"], resumed["held"]) == (False, paused.document["since"], 0)
    assert "were not paused" in pmagent(workspace, "resume", "--operator", "ada").text
    assert pmagent(workspace, "status", "--format", "json").document["paused"] is None


def test_who_follows_a_run_that_is_over_hears_of_no_later_pause(workspace: Path) -> None:
    plan = workspace / "look.yaml"
    plan.write_text("[{task_id: a, intent: x, tools: [echo]}]")
    ran = pmagent(workspace, "run", "x", "--plan", str(plan), "--dry-run", "--format", "json")
    assert ran.code == 0, ran.errors
    assert pmagent(workspace, "pause", "--operator", "ada").code == 0
    followed = pmagent(workspace, "run", "--follow", ran.document["run_id"])
    assert (followed.code, "paused" in followed.errors) == (0, False)


def test_a_reason_that_is_too_long_stops_nobody_from_stopping(workspace: Path) -> None:
    paused = pmagent(workspace, "pause", "--operator", "ada", "--reason", "x" * 600, "--format", "json")
    assert (paused.code, paused.document["reason"]) == (0, "x" * 500)


def test_a_name_that_no_operator_has_pauses_nothing(workspace: Path) -> None:
    refused = pmagent(workspace, "pause", "--operator", "ada lovelace")
    assert refused.code == 2
    assert "no operator's name" in refused.errors


@pytest.mark.slow
def test_what_is_held_waits_over_a_restart_and_runs_when_effects_are_resumed(workspace: Path) -> None:
    with running(workspace) as daemon:
        assert pmagent(workspace, "pause", "--operator", "ada").code == 0
        asked = ("run", "say it", "--plan", "plan.yaml", "--detach")
        run_id = spawn("--workspace", str(workspace), *asked, cwd=workspace).lines[0]
        assert pmagent(workspace, "status", "--format", "json").document["held"] == 1
        assert daemon.end()[0] == 0
    with running(workspace) as daemon:
        assert pmagent(workspace, "status", "--format", "json").document["held"] == 1
        assert pmagent(workspace, "runs", run_id, "--format", "json").document["state"] == "open"
        waiting = pmagent(workspace, "log", "tail", "--after", "0", "--type", "task.exited", "--format", "json")
        assert waiting.text == "", "nothing was started"
        assert pmagent(workspace, "resume", "--operator", "ada").code == 0
        until = ("log", "tail", "-f", "--after", "0", "--exit-on", "run.ended", "--timeout", "60s")
        assert pmagent(workspace, *until).code == 0
        assert daemon.end()[0] == 0
    assert pmagent(workspace, "runs", run_id, "--format", "json").document["state"] == "done"
    assert pmagent(workspace, "replay").code == 0
    assert pmagent(workspace, "rebuild", "--check").code == 0


def test_without_a_daemon_nothing_waits_for_a_resumption_that_cannot_come(workspace: Path) -> None:
    """A command that holds the log could wait for ever: nobody else can resume effects then."""
    assert pmagent(workspace, "pause", "--operator", "ada", "--reason", "rewiring").code == 0
    before = pmagent(workspace, "status", "--format", "json").document["log"]["position"]
    refused = spawn("--workspace", str(workspace), "run", "say it", "--plan", "plan.yaml", cwd=workspace)
    assert refused.code == 1
    assert "effects are paused by ada since" in refused.errors
    assert "(rewiring), so nothing of it would start" in refused.errors
    assert "pmagent resume" in refused.errors
    status = pmagent(workspace, "status", "--format", "json").document
    assert (status["held"], status["jobs"]) == (0, [])
    after = pmagent(workspace, "log", "tail", "--after", str(before), "--type", "run.requested", "--format", "json")
    assert after.text == "", "nothing was recorded of it"
    with pytest.raises(Paused):
        call(workspace, "kernel.checks", {"kind": "check", "names": ["any"], "seconds": 1.0})


@pytest.mark.slow
def test_beside_a_daemon_a_run_that_waits_says_why_and_goes_on_when_effects_are_resumed(workspace: Path) -> None:
    with running(workspace) as daemon:
        assert pmagent(workspace, "pause", "--operator", "ada").code == 0
        asked = ("--workspace", str(workspace), "run", "say it", "--plan", "plan.yaml")
        run = warm.Popen(
            [*PMAGENT, *asked], cwd=workspace, env=clean_environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with run:
            assert run.stderr is not None
            seen: list[str] = []
            with pytest.raises(RemoteError, match="effects are paused by ada") as refused:
                call(workspace, "kernel.checks", {"kind": "check", "names": ["any"], "seconds": 1.0})
            assert refused.value.kind == Paused.__name__, "who waits for an answer is told at once, too"
            envelope = build_envelope("SafeOPSDecision", "Add a page", workspace=workspace)
            with pytest.raises(RemoteError, match="effects are paused by ada") as unasked:
                reason(envelope, workspace=workspace, engine="langchain", model="anthropic:any")
            assert unasked.value.kind == Paused.__name__, "no model is asked in a pause"
            assert reason(envelope, workspace=workspace, engine="rules").decision, "the rules need none"
            with pytest.raises(RemoteError) as known:
                reason(envelope, workspace=workspace, engine="langchain", model="anthropic:any")
            assert known.value.kind == "ModelUnavailable", "what has its result by now waits for nothing"
            while "pmagent resume" not in (line := run.stderr.readline()):
                assert line, seen
                seen.append(line)
            assert "effects are paused by ada" in line
            assert pmagent(workspace, "resume", "--operator", "ada").code == 0
            out, errors = run.communicate(timeout=SECONDS)
        assert run.returncode == 0, (out, errors)
        assert "effects are not paused any more" in errors
        assert daemon.end()[0] == 0


@pytest.mark.slow
def test_who_cannot_be_paused_is_named_at_once_with_what_ends_it(workspace: Path) -> None:
    """A run without a daemon holds the log, and takes no requests."""
    os.mkfifo(workspace / "never")
    (workspace / "plan.yaml").write_text(PLAN.replace("echo", "cat").replace("hello", "never"))
    asked = ("--workspace", str(workspace), "run", "wait", "--plan", "plan.yaml")
    run = warm.Popen(
        [*PMAGENT, *asked], cwd=workspace, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with run, ExitStack() as ends:
        ends.callback(run.send_signal, signal.SIGINT)  # or it would wait for ever
        assert run.stderr is not None
        while "say" not in (line := run.stderr.readline()):
            assert line
        begun = time.monotonic()
        refused = pmagent(workspace, "pause", "--operator", "ada")
        assert time.monotonic() - begun < CONNECT_SECONDS
        assert refused.code == 5
        assert "held by the run" in refused.errors
        status = pmagent(workspace, "status", "--format", "json")
        assert (status.code, [job["kind"] for job in status.document["jobs"]]) == (0, ["run"])
        assert pmagent(workspace, "pla", "list").code == 0
        assert "✗" not in pmagent(workspace, "doctor").text.split("daemon", 1)[1].split("\n")[0]
        lowered = pmagent(workspace, "pla", "mode", "OBSERVE", "--operator", "ada")
        assert lowered.code == 5
        assert "held by the run" in lowered.errors
        assert "Ctrl-C there ends it" in refused.errors
    assert pmagent(workspace, "pause", "--operator", "ada").code == 0
