"""A log that was begun elsewhere, with a run that is open in it: what a clone or an archive may bring along."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from pmagent.actors.core.actor import Io, Performers, Resources
from pmagent.contracts.orchestra_events import RunRequested, TaskAttemptRequested, TaskExited
from pmagent.events.event import Event
from pmagent.service.host import open_host
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from tests.conftest import fresh_example
from tests.support.orchestra import RUN, config, plan

GIT = ["git", "-c", "user.name=eve", "-c", "user.email=eve@localhost"]


def shipped(folder: Path, state: Path) -> Path:
    """A workspace in ``folder`` whose log was left with a run open, by a user whose registry is ``state``."""
    workspace = fresh_example(folder / "made")
    left = folder / "shipped"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        accept(workspace)
        patch.setattr("pmagent.workers.placing.performers", _performers)
        anyio.run(_leave, workspace, left)
    return left


def lines_of(workspace: Path) -> list[bytes]:
    """Every byte of the log's segments, by line."""
    segments = sorted(Layout(workspace).log.glob("*.jsonl"))
    return [line for path in segments for line in path.read_bytes().split(b"\n")]


def as_earlier(workspace: Path) -> Path:
    """``workspace``, with its evidence where an earlier release keeps it: in ``.pmagent`` itself, where git can track
    it."""
    folder = workspace / ".pmagent"
    for name in ("log", "blobs", "cache", "run", "LOCK"):
        if (folder / "data" / name).exists():
            os.replace(folder / "data" / name, folder / name)
    shutil.rmtree(folder / "data")
    return workspace


def git(workspace: Path, *arguments: str) -> None:
    """Run git there."""
    subprocess.run([*GIT, "-C", str(workspace), *arguments], check=True, capture_output=True)


async def _leave(workspace: Path, left: Path) -> None:
    """Copy the workspace in the middle of a run, as a kill would leave it."""
    asked = RunRequested(run_id=RUN, intent="x", plan=plan({"a": []}), config=config())
    async with open_host(workspace, "orchestra.run") as host:
        await host.ready()
        await host.ask(asked, RUN, {"task.attempt_requested"}, 60.0)
        shutil.copytree(workspace, left)


def _performers(_: Resources) -> Performers:
    async def never(_: Event, __: Io) -> TaskExited:
        await anyio.sleep_forever()
        raise AssertionError

    return {TaskAttemptRequested: never}
