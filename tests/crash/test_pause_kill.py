"""A daemon is killed with SIGKILL in a pause, with effects that it holds: they are held on, nothing starts, and each
has one end."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.control import EffectsResumed
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.orchestra_events import RunEnded, TaskAttemptRequested, TaskExited
from pmagent.contracts.payload import OutwardRequest
from pmagent.replay.simulation.invariants_pauses import check_pauses
from tests.support.commands import pmagent
from tests.support.daemons import Daemon, running
from tests.support.logged import proven_history
from tests.support.sandboxes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.slow]

PLAN = "- {task_id: say, intent: say something, tools: [echo], inputs: {args: [hello]}}\n"


def ask(workspace: Path, *arguments: str) -> Any:
    """The answer to a command, as a document."""
    done = pmagent(workspace, *arguments, "--format", "json")
    assert done.code == 0, done.errors
    return done.document


def begun(workspace: Path) -> str:
    """A run that was asked for, and is left to itself: its id."""
    asked = ("run", "say it", "--plan", str(workspace / "plan.yaml"), "--detach")
    done = pmagent(workspace, *asked)
    assert done.code == 0, done.errors
    return done.lines[0]


def ended(workspace: Path, run: str) -> None:
    """Wait for the end of a run."""
    until = ("log", "tail", "-f", "--after", "0", "--exit-on", "run.ended", "--correlation", run, "--timeout", "60s")
    assert pmagent(workspace, *until).code == 0


def kill(daemon: Daemon) -> None:
    assert daemon.end(signal.SIGKILL)[0] == -signal.SIGKILL


def test_a_pause_outlives_daemons_that_are_killed_and_what_they_held_starts_once(workspace: Path) -> None:
    (workspace / "plan.yaml").write_text(PLAN)
    with running(workspace) as daemon:
        ask(workspace, "pause", "--operator", "ada")
        first, second = begun(workspace), begun(workspace)
        assert ask(workspace, "status")["held"] == 2
        kill(daemon)
    with running(workspace) as daemon:
        assert ask(workspace, "status")["held"] == 2
        third = begun(workspace)
        ask(workspace, "cancel", second)
        ended(workspace, second)
        status = ask(workspace, "status")
        assert (status["held"], status["paused"]["operator_id"]) == (2, "ada")
        kill(daemon)
    with running(workspace) as daemon:
        assert ask(workspace, "resume", "--operator", "grace")["held"] == 2
        for run in (first, third):
            ended(workspace, run)
        assert daemon.end()[0] == 0
    history = proven_history(workspace)
    check_pauses(history)
    states = {event.correlation: event.data.state for event in history if isinstance(event.data, RunEnded)}
    assert states == {first: "done", second: "cancelled", third: "done"}
    held = [event.position for event in history if isinstance(event.data, TaskAttemptRequested)]
    ends = Counter(event.causation for event in history if event.kind == "fact" and event.causation in held)
    assert ends == dict.fromkeys(held, 1), "each has one end"
    resumed = next(event.position for event in history if isinstance(event.data, EffectsResumed))
    exited = [event for event in history if isinstance(event.data, TaskExited)]
    assert len(exited) == 2
    assert all(event.position > resumed for event in exited), "nothing was done in the pause"
    assert [event.data.reason for event in history if isinstance(event.data, EffectCancelled)
            and isinstance(history[event.causation - 1].data, OutwardRequest)] == ["cancel_requested"]
