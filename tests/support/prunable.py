"""Runs whose output is in part each one's own and in part the same, for tests of what is given up."""

from __future__ import annotations

from pathlib import Path

import anyio

from pmagent.contracts.orchestra_events import RunRequested
from pmagent.service.host import open_host
from pmagent.workspace.layout import Layout
from tests.support.orchestra import config, plan

SECONDS = 60.0
SCRIPT = "echo number {n}; echo every run has this > $ARTIFACTS/shared; seq {n}000 > $ARTIFACTS/own"


def run_id(number: int) -> str:
    """The id of the n-th run."""
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012}"


def real_runs(workspace: Path, *numbers: int) -> None:
    """These runs, each of one task, in a process of their own kind, which ends in order."""

    async def go() -> None:
        async with open_host(workspace, "orchestra.run") as host:
            await host.ready()
            for number in numbers:
                task = {"tools": ["sh"], "inputs": {"args": ["-c", SCRIPT.format(n=number)]}}
                asked = RunRequested(
                    run_id=run_id(number), intent=f"run {number}", config=config("whitelist_tools: [sh]\n"),
                    plan=plan({"a": []}, a=task),
                )  # fmt: skip
                ended = await host.ask(asked, run_id(number), {"run.ended"}, SECONDS)
                assert ended.data.state == "done", ended.data

    anyio.run(go)


def blobs_in(workspace: Path) -> set[str]:
    """The names of all blobs on disk."""
    return {path.name for path in Layout(workspace).blobs.glob("??/*")}


def runs_left(workspace: Path) -> set[str]:
    """The runs that have documents."""
    folders = {path.name for path in (workspace / "runs").iterdir()}
    return folders | {path.stem for path in (workspace / "jobs").iterdir()}
