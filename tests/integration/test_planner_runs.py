"""Runs without a plan of their own, on a real log: the planner's program is asked, told what was wrong, and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest

from pmagent.actors.orchestra.planning import effects as planner
from pmagent.actors.registry import all_actors
from pmagent.contracts.orchestra_events import (
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
)
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.service.host import Host, open_host
from tests.support.histories import problems, record
from tests.support.orchestra import config
from tests.support.planners import RUN, Put, all_end, planner_program

PLAN = '[{"task_id": "a", "intent": "say it", "tools": ["echo"]}]'
ROOT = Path(__file__).resolve().parents[2]

__all__ = ["planner_program"]


def happened(host: Host) -> list[Event]:
    """The events that are durable."""
    return [typed(stored, host._blobs) for stored in events(host.storage)]


async def until(host: Host, *kinds: type[msgspec.Struct]) -> Any:
    """The first payload of one of these kinds, when it is durable."""
    with anyio.fail_after(60):
        while True:
            for event in happened(host):
                if isinstance(event.data, kinds):
                    return event.data
            await anyio.lowlevel.checkpoint()


def wanted() -> RunRequested:
    """A run that is to be planned only."""
    return RunRequested(run_id=RUN, intent="say hello", config=config(), plan_only=True)


def over(workspace: Path) -> tuple[RunEnded | RunRefused, list[Event]]:
    """How the run ends, and all that happened."""

    async def live() -> tuple[Any, list[Event]]:
        async with open_host(workspace, "daemon") as host:
            await host.runtime.append(wanted(), RUN, "tests", RUN)
            end = await until(host, RunEnded, RunRefused)
            return end, happened(host)

    return anyio.run(live)


async def next_start(workspace: Path) -> RunEnded:
    """How the run ends that an earlier daemon left."""
    async with open_host(workspace, "daemon") as host:
        end: RunEnded = await until(host, RunEnded, RunRefused)
    return end


def of(log: list[Event], kind: type[Any]) -> list[Any]:
    """The payloads of this kind."""
    return [event.data for event in log if isinstance(event.data, kind)]


def test_a_third_answer_that_is_a_plan_is_one(workspace: Path, tmp_path: Path, planner_program: Put) -> None:
    answers = ("Sure, let me think.", '[{"task_id": "a"}]', f"```json\n{PLAN}\n```")
    stand_in = planner_program(*({"say": answer} for answer in answers))
    end, log = over(workspace)
    assert isinstance(end, RunEnded)
    assert end.state == "planned"
    assert [made.tasks for made in of(log, PlanMade)] == [1]
    first, second, third = stand_in.prompts
    assert "say hello" in first
    assert "holds no JSON that can be read" in second
    assert "tasks[0].intent is missing" in third
    assert [call.prompt for call in of(log, PlannerCallRequested)] == stand_in.prompts
    assert problems(record(workspace, "now", tmp_path / "histories"), all_actors()) == []


def test_three_answers_that_are_no_plan_end_the_run(workspace: Path, planner_program: Put) -> None:
    stand_in = planner_program({"say": "no"})
    end, _ = over(workspace)
    assert isinstance(end, RunRefused)
    assert (end.code, len(stand_in.calls)) == ("bad_plan", 3)
    assert "holds no JSON" in end.reasons[0]


def test_a_planner_that_goes_wrong_once_is_asked_again(workspace: Path, planner_program: Put) -> None:
    stand_in = planner_program({"exit": 1, "stderr": "boom"}, {"raw": "e30="}, {"say": PLAN})
    end, log = over(workspace)
    assert isinstance(end, RunEnded)
    assert [failed.code for failed in of(log, PlannerFailed)] == ["exited", "malformed"]
    assert len(stand_in.calls) == 3


def test_without_the_program_the_run_is_refused_and_a_file_named(
    workspace: Path, tmp_path: Path, planner_program: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner_program({"say": PLAN})
    monkeypatch.setenv("PATH", str(tmp_path))
    end, log = over(workspace)
    assert isinstance(end, RunRefused)
    assert end.code == "no_plan"
    assert "claude" in end.reasons[0]
    assert "--plan FILE" in end.mend[0]
    assert len(of(log, PlannerCallRequested)) == 1


def test_a_run_that_is_cancelled_ends_its_planner(workspace: Path, planner_program: Put) -> None:
    stand_in = planner_program({"hang": "listening", "grandchild": True})

    async def live() -> RunEnded:
        async with open_host(workspace, "daemon") as host:
            await host.runtime.append(wanted(), RUN, "tests", RUN)
            await anyio.to_thread.run_sync(stand_in.wait_hanging)
            there = stand_in.processes()
            await host.runtime.append(RunCancelRequested(run_id=RUN), "cancel", "tests", RUN)
            end: RunEnded = await until(host, RunEnded)
            assert len(there) >= 2
            assert await anyio.to_thread.run_sync(all_end, there)
        return end

    assert anyio.run(live).state == "cancelled"


def test_a_stop_ends_the_planner_and_the_next_start_asks_again(
    workspace: Path, tmp_path: Path, planner_program: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "GRACE_SECONDS", 0.3)
    stand_in = planner_program({"hang": "deaf", "grandchild": True}, {"say": PLAN})

    async def first() -> None:
        async with open_host(workspace, "daemon") as host:
            await host.runtime.append(wanted(), RUN, "tests", RUN)
            await anyio.to_thread.run_sync(stand_in.wait_hanging)

    anyio.run(first)
    assert stand_in.is_gone()
    assert anyio.run(next_start, workspace).state == "planned"
    assert len(stand_in.calls) == 2
    assert problems(record(workspace, "now", tmp_path / "histories"), all_actors()) == []


DAEMON = """
import sys, anyio
sys.path.insert(0, {root!r})
from pmagent.service import host as hosts
from pathlib import Path
from tests.integration.test_planner_runs import wanted
from tests.support.planners import RUN

async def live():
    async with hosts.open_host(Path({workspace!r}), "daemon") as host:
        await host.runtime.append(wanted(), RUN, "tests", RUN)
        await anyio.sleep_forever()

anyio.run(live)
"""


def test_a_killed_daemon_takes_its_planner_along_and_the_next_asks_again(workspace: Path, planner_program: Put) -> None:
    stand_in = planner_program({"hang": "deaf", "grandchild": True}, {"say": PLAN})
    program = DAEMON.format(root=str(ROOT), workspace=str(workspace))
    state = os.environ["XDG_STATE_HOME"]
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(workspace.parent), "XDG_STATE_HOME": state}
    with subprocess.Popen([sys.executable, "-c", program], env=environ) as process:
        stand_in.wait_hanging()
        there = stand_in.processes()
        process.send_signal(signal.SIGKILL)
        assert len(there) >= 2
        assert all_end(there)

    assert anyio.run(next_start, workspace).state == "planned"
    assert len(stand_in.calls) == 2
