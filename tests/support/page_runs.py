"""Runs of the harness, for pages: what tools say, and the tasks of a run."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import Captured
from tests.support.orchestra import exited
from tests.support.pages import RunHarness


def captured(content: bytes, total: int | None = None) -> Captured:
    """A stream of which this was kept."""
    size = len(content)
    return Captured(
        sha256=sha256(content).hexdigest(), size_bytes=size, total_bytes=total or size, cut=total is not None
    )


def told(stdout: bytes = b"", stderr: bytes = b"", code: int = 0, **more: Any) -> Any:
    """A tool that says this each time."""
    return lambda event: exited(event, code, stdout=captured(stdout), stderr=captured(stderr), **more)


def task_ids(harness: RunHarness) -> dict[str, str]:
    """The tasks of the harness's run: name -> id."""
    return {
        one.name: one.task_id for event in harness.history if event.type == "tasks.planned" for one in event.data.tasks
    }


def plan_of(arguments: list[str], **more: Any) -> PlanText:
    """A plan of one task with these arguments."""
    inputs = {"args": arguments, "env": {"NAME": "a value"}}
    task = {"task_id": "a", "intent": "do a", "tools": ["echo"], "inputs": inputs, **more}
    return msgspec.convert({"tasks": [task]}, PlanText)
