"""A host is killed with SIGKILL while a run's programs work in real sandboxes: none of them outlives it, the run is
taken up by the next start, and what was finished is not done again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from pmagent.actors.kernel import reader
from pmagent.contracts.orchestra_events import (
    RunEnded,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
)
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_runs import check_runs
from pmagent.service.operations import call
from tests.crash.kill_run import working
from tests.support.commands import pmagent
from tests.support.effort import rounds, some
from tests.support.forked import KILLED, forks
from tests.support.logged import proven_history
from tests.support.planners import all_end, is_cut_off
from tests.support.sandboxes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.slow]

SECONDS = 120.0
MOMENTS = (
    "tasks.planned:1", "oa.permit_granted:1", "task.finished:1", "task.attempt_requested:1", "task.attempt_requested:3",
    "task.exited:1", "task.finished:2", "task.assigned:4", "plan.finished:1", "run.ended:1",
)
"""Events on which a host kills itself as soon as they are durable."""

Host = Callable[[str, int, str], tuple[int, int]]


@contextmanager
def hosts(workspace: Path) -> Iterator[Host]:
    """Runs one host at a time: run, retries, when it is killed -> its exit code, and how many processes worked then."""
    with forks("kill_run", workspace) as ask:

        def run(run_id: str, retries: int, kill: str) -> tuple[int, int]:
            code, seen = map(int, ask(run_id, retries, kill))
            return code, seen

        yield run


def run_id(number: int) -> str:
    """The n-th run's id; of this process alone, since the processes of a run are known by it."""
    return f"00000000-0000-4000-8000-{os.getpid():08x}{number:04x}"


def test_a_run_whose_host_is_killed_at_any_event_goes_on_with_what_is_left(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "QUIET_S", 0.0)
    moments = some(MOMENTS, 4)
    with hosts(workspace) as host:
        for number, moment in enumerate(moments):
            assert host(run_id(number), 3, moment)[0] == KILLED, f"{moment}: it did not come"
            assert_nothing_works(run_id(number))
            if number % 2:
                call(workspace, "oa.snapshot")  # it takes nothing up, which the log is held to
            assert host(run_id(number), 3, "never")[0] == 0, f"{moment}: the next start failed"
    check(workspace, len(moments), "done")


def test_a_run_whose_hosts_are_killed_again_and_again_comes_to_its_end(workspace: Path) -> None:
    random = Random(7)
    worked = 0
    with hosts(workspace) as host:
        for number in range(rounds(3, 1)):
            for _ in range(5):
                code, seen = host(run_id(number), 10, f"{random.random() * 0.4:.3f}")
                if code == 0:
                    break  # it came to its end before
                assert code == KILLED
                worked += seen
                assert_nothing_works(run_id(number))
            assert host(run_id(number), 10, "never")[0] == 0
    assert worked, "nothing was at work when the hosts were killed"
    check(workspace, rounds(3, 1), "done")


def test_a_task_that_may_not_be_tried_again_fails_when_its_host_is_killed(workspace: Path) -> None:
    with hosts(workspace) as host:
        assert host(run_id(0), 0, "task.attempt_requested:2")[0] == KILLED
        assert host(run_id(0), 0, "never")[0] == 0
    recorded = check(workspace, 1, "failed")
    reasons = {event.data.reason for event in recorded if isinstance(event.data, TaskAttemptFailed)}
    assert reasons == {"interrupted (crash)"}


def assert_nothing_works(name: str) -> None:
    """No program of the run outlives its host: who is still there ends at once. Of a sandbox that was only being built
    the inner half may stay, which waits for ever and starts nothing (docs/threat-model.md): such are ended here."""
    deadline = time.monotonic() + SECONDS
    while left := working(name):
        assert time.monotonic() < deadline, f"processes {left} of run {name} go on"
        handles = []
        for pid in left:
            with suppress(ProcessLookupError):  # it has just ended
                handles.append(os.pidfd_open(pid))
                if is_cut_off(pid):
                    signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
        all_end(handles, 0.5)


def check(workspace: Path, runs: int, state: str) -> list[Event]:
    """The log is whole, replays, and holds so many runs that ended so; what was done was not done again; the documents
    are those of the log. Its events."""
    recorded = proven_history(workspace)
    check_runs(recorded)
    assert [event.data.state for event in recorded if isinstance(event.data, RunEnded)] == [state] * runs
    for event in recorded:
        if isinstance(event.data, TaskFinished) and event.data.result.state == "done":
            check_done_once(recorded, event.data)
    rebuilt = pmagent(workspace, "rebuild", "--check")
    assert rebuilt.code == 0, rebuilt.text + rebuilt.errors
    return recorded


def check_done_once(recorded: list[Event], result: TaskFinished) -> None:
    """The task's program has come to a good end once, by its last attempt."""
    own = [event for event in recorded if getattr(event.data, "task_id", "") == result.result.task_id]
    good = [event.data.attempt for event in own if isinstance(event.data, TaskExited) and event.data.exit_code == 0]
    asked = [event.data.attempt for event in own if isinstance(event.data, TaskAttemptRequested)]
    assert asked == list(range(1, result.attempts + 1))
    assert good == [result.attempts]
