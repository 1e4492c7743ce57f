"""Runs of Orchestra for measurements: plans of any size, a configuration, and a simulated tool."""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import Captured, RunRequested, TaskAttemptRequested, TaskExited
from pmagent.events.event import Event

NOTHING = Captured(sha256=sha256(b"").hexdigest(), size_bytes=0, total_bytes=0, cut=False)
_NEAR = 200


def run_id(number: int) -> str:
    """The id of a run."""
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012d}"


def graph(tasks: int, tool: str = "echo", seed: int = 1) -> PlanText:
    """Tasks that each wait for up to three of those shortly before."""
    random = Random(seed)
    listed: list[dict[str, Any]] = []
    for number in range(tasks):
        near = range(max(0, number - _NEAR), number)
        waits = sorted(random.sample(near, min(len(near), random.randrange(4))))
        listed.append({
            "task_id": f"t{number}", "intent": f"task {number}", "tools": [tool],
            "depends_on": [f"t{one}" for one in waits],
        })
    return msgspec.convert({"tasks": listed}, PlanText)


def apart(tasks: int, tool: str) -> PlanText:
    """Tasks that wait for none."""
    listed = [{"task_id": f"t{number}", "intent": f"task {number}", "tools": [tool]} for number in range(tasks)]
    return msgspec.convert({"tasks": listed}, PlanText)


def config(workers: int, tool: str = "echo") -> OrchestraConfig:
    """A configuration with so many workers and this tool."""
    return read_config(
        f'version: "1.0"\nwhitelist_tools: ["{tool}"]\nconcurrency: {{max_workers: {workers}}}\n'
        "policies: {max_total_duration_sec: 86400}\n"
    )


def request(plan: PlanText, workers: int, tool: str = "echo", number: int = 1) -> RunRequested:
    """A request to run the plan."""
    return RunRequested(run_id=run_id(number), intent="measure", plan=plan, config=config(workers, tool), form=2)


def exited(event: Event) -> TaskExited:
    """The answer of a simulated tool."""
    asked: TaskAttemptRequested = event.data
    return TaskExited(
        request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt, exit_code=0,
        signal=None, timed_out=False, exceeded="", duration_ms=1, stdout=NOTHING, stderr=NOTHING, last_lines=[],
        artifacts=[],
    )
