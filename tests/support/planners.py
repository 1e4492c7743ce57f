"""Puts a stand-in for the planner's program on PATH, and looks for what is left of it."""

from __future__ import annotations

import base64
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from pmagent.actors.sandbox.orphans import end_orphans
from pmagent.contracts.orchestra_events import PlannerCallRequested
from pmagent.events.event import Event

PROGRAM: Final = Path(__file__).with_name("claude_stand_in.py")
RUN: Final = "5b0c7a52-3f7e-4c1d-9a55-0000000000aa"
SYSTEM: Final = "/usr/local/bin:/usr/bin:/bin"
SECONDS: Final = 120.0


Put = Callable[..., "StandIn"]


class StandIn:
    """A ``claude`` in ``folder`` that does at its n-th call what the n-th of ``told`` says, and the last ever after."""

    def __init__(self, folder: Path, *told: dict[str, Any]) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "told.json").write_text(json.dumps(told))
        program = folder / "claude"
        program.write_text(f"#!{sys.executable} -I\n{PROGRAM.read_text()}")
        program.chmod(0o755)
        os.mkfifo(folder / "hanging")
        self.path = f"{folder}:{SYSTEM}"

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Its calls, each with its arguments."""
        numbers = sorted(int(file.stem.removeprefix("call-")) for file in self.folder.glob("call-*.json"))
        return [json.loads((self.folder / f"call-{number}.json").read_text()) for number in numbers]

    @property
    def prompts(self) -> list[str]:
        """Its prompts, one for each call."""
        return [call["prompt"] for call in self.calls]

    def wait_hanging(self) -> None:
        """Return when it hangs; blocking."""
        (self.folder / "hanging").open().close()

    def processes(self) -> list[int]:
        """Its processes that are there, and those that hold it: a pidfd of each, for ``all_end`` to close."""
        return [handle for _, handle in self._there()]

    def is_gone(self) -> bool:
        """Whether no process of it is there, or all that are end within ``SECONDS``."""
        return all_end(self.processes()) and not self.processes()

    def is_gone_with(self, caller: str) -> bool:
        """``is_gone`` when the process whose command line holds ``caller`` was killed at any moment.

        Killed while it built, bubblewrap may leave its inner half, which waits for the outer one for ever and starts
        nothing: such are ended as the next start ends them.
        """
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            end_orphans()
            waiting = [handle for _, handle in self._there(caller)]
            if not waiting:
                return True
            all_end(waiting, 0.5)
        return False

    def _there(self, caller: str = "") -> list[tuple[int, int]]:
        """Pid and pidfd of each process whose command line names the program, or holds ``caller``."""
        found: list[tuple[int, int]] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    handle = os.pidfd_open(int(entry.name))
                except OSError:
                    continue  # it has ended
                line = command_line(int(entry.name))
                if str(self.folder / "claude") in line or (caller and any(caller in word for word in line)):
                    found.append((int(entry.name), handle))
                else:
                    os.close(handle)
        return found


@pytest.fixture
def planner_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """Makes a stand-in the ``claude`` on PATH; afterwards nothing of it, and no temporary folder, may be left."""
    made: list[StandIn] = []
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def install(*how: dict[str, Any]) -> StandIn:
        made.append(StandIn(tmp_path / f"bin{len(made)}", *how))
        monkeypatch.setenv("PATH", made[-1].path)
        return made[-1]

    yield install
    assert all(one.is_gone() for one in made)
    assert os.listdir(temporary) == []


def command_line(pid: int) -> list[str]:
    """The words of a process's command line; none when it has ended."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_cut_off(pid: int, parent: int = 1) -> bool:
    """Whether this is process 1 of a bubblewrap whose outer half is dead, and has started nothing. ``parent`` is whom
    orphans fall to."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return told["Name"] == "bwrap" and told["PPid"] == str(parent) and told["NSpid"].endswith("\t1") and not children


def all_end(handles: Sequence[int], seconds: float = SECONDS) -> bool:
    """Whether all processes of these pidfds, which are closed, end within this time."""
    waiting = select.poll()
    left = set(handles)
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    while left and (over := waiting.poll(seconds * 1000)):
        for handle, _ in over:
            waiting.unregister(handle)
            left.discard(handle)
    for handle in handles:
        os.close(handle)
    return not left


def raw(content: bytes) -> dict[str, str]:
    """Told to write exactly this."""
    return {"raw": base64.b64encode(content).decode()}


def request(prompt: str = "make a plan", seconds: float = SECONDS, model: str = "toy-1", position: int = 7) -> Event:
    """A call of the planner, as it stands in the log."""
    data = PlannerCallRequested(
        permit=3, run_id=RUN, revision=0, attempt=1, action="feature_work", model=model, prompt=prompt, seconds=seconds
    )
    time = "2026-11-21T12:00:00.000000Z"
    return Event(position, time, f"{position}", "decision", "coordinator", "planner.call_requested", RUN, 0, data, b"")
