"""A life of a workspace with runs of every kind, and how to record it.

    .venv/bin/python -m tests.support.runs_history NAME

lives it in a copy of the example workspace, and records it as ``tests/histories/NAME``, which must not exist.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio

from pmagent.actors.kernel import reader
from pmagent.contracts.oa import OaSnapshotRequested
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import RunCancelRequested, RunRequested
from pmagent.events.event import Event
from pmagent.service.host import Host, open_host
from tests.conftest import EXAMPLE
from tests.support.histories import record
from tests.support.orchestra import config, plan
from tests.support.planners import StandIn

SETTINGS = "whitelist_tools: [sh, no-such-program]\n"
ENDS = {"run.ended", "run.refused"}
SECONDS = 60.0
REPLACED = '[{"task_id": "again", "intent": "once more", "tools": ["sh"], "depends_on": ["fine"]}]'


def shell(script: str, **more: Any) -> dict[str, Any]:
    """Fields of a task that runs a script."""
    return {"tools": ["sh"], "inputs": {"args": ["-ec", script]}, **more}


def run_id(number: int) -> str:
    """The n-th run's id."""
    return f"00000000-0000-4000-8000-{number:012x}"


class Life:
    """Runs that are asked for one after another. ``host`` is where."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._number = 0
        self._began = anyio.Event()
        host.runtime.listen(self._hear)

    def _hear(self, events: Sequence[Event], _sums: Any) -> None:
        if any(event.type == "task.attempt_requested" for event in events):
            self._began.set()

    async def run(self, given: PlanText | None, begun: Any = None, **more: Any) -> None:
        """Ask for a run, and wait for its end; ``begun`` is called with its id when its first attempt was requested."""
        self._number += 1
        self._began = anyio.Event()
        name = run_id(self._number)
        limits = {"base": 0.05, "retries": 1, **more.pop("limits", {})}
        asked = RunRequested(run_id=name, intent="live", plan=given, config=config(SETTINGS, **limits), **more)
        with anyio.fail_after(SECONDS):
            await self._ask(asked, begun)

    async def _ask(self, asked: RunRequested, begun: Any) -> None:
        async with anyio.create_task_group() as group:
            if begun is not None:
                group.start_soon(self._when_begun, begun, asked.run_id)
            await self._host.ask(asked, asked.run_id, ENDS, SECONDS)

    async def _when_begun(self, begun: Any, name: str) -> None:
        await self._began.wait()
        await begun(name)

    async def cancel(self, name: str) -> None:
        """Take the run back."""
        await self._host.ask(RunCancelRequested(run_id=name), f"cancel-{name}", {"run.cancel_answered"})

    async def look(self) -> None:
        """The surfaces are read."""
        await self._host.ask(OaSnapshotRequested(), f"look-{self._number}", {"oa.snapshot_taken"})


async def _live(workspace: Path) -> None:
    handoff = workspace / "share" / "HANDOFF_KERNEL.json"

    async def block(_: str) -> None:
        handoff.write_text(json.dumps({**json.loads(handoff.read_text()), "mode": "BLOCKED"}))
        await life.look()

    async with open_host(workspace, "daemon") as host:
        await host.ready()
        life = Life(host)
        waits = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
        left = {name: shell(f"echo {name} > $ARTIFACTS/left; ls /inputs || true") for name in waits}
        slow = plan({"slow": [], "after": ["slow"]}, slow=shell("exec sleep 60"), after=shell("true"))
        await life.run(plan(waits, **left))
        await life.run(plan(waits, **{**left, "b": shell("echo no; exit 3")}))
        await life.run(plan({"a": []}, a={"tools": ["no-such-program"]}))
        await life.run(plan(waits, **left), plan_only=True)
        await life.run(plan(waits, **left), dry_run=True)
        await life.run(plan({"a": []}, a={"tools": ["bash"]}))
        await life.run(plan({"a": []}), action="unheard_of")
        await life.run(slow, limits={"total": 0.5})
        await life.run(slow, life.cancel)
        await life.run(None)
        await life.run(None)
        again = {"fine": shell("echo fine"), "wrong": shell("exit 4")}
        await life.run(plan({"fine": [], "wrong": ["fine"]}, **again), replans=1, limits={"retries": 0})
        await life.run(slow, block)


def live(workspace: Path) -> None:
    """Ask for runs of every kind; the last one finds the kernel BLOCKED. The planner is a stand-in."""
    with tempfile.TemporaryDirectory() as folder:
        answers = ["I will not", "[]", "no", REPLACED.replace('"fine"', ""), REPLACED]
        stand_in = StandIn(Path(folder) / "bin", *({"say": text} for text in answers))
        with patch.dict(os.environ, {"PATH": stand_in.path}), patch.object(reader, "QUIET_S", 0.0):
            anyio.run(_live, workspace)


def main() -> None:
    """Record a life under the name given on the command line."""
    (name,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        shutil.copytree(EXAMPLE, workspace)
        live(workspace)
        sys.stdout.write(f"{record(workspace, name)}\n")


if __name__ == "__main__":
    main()
