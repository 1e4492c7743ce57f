"""A command as a process of its own, read while it goes on: line by line from a pipe, or from a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, Ran, accepted, clean_environment, pmagent
from tests.support.daemons import Daemon, running
from tests.support.terminals import Terminal, open_pty


class Started:
    """A running command; its stderr is read as it comes, its stdout at the end. ``terminal``: its stdin and stderr are
    one of this many columns and rows, in which Ctrl-C reaches it."""

    def __init__(
        self, workspace: Path, *arguments: str, terminal: tuple[int, int] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        accepted(workspace)
        environment = clean_environment(**{"TERM": "xterm", **(environ or {})})
        self.screen = Terminal(*terminal) if terminal else None
        self.said = b""
        if terminal:
            self.notes, slave = open_pty(*terminal)
            self.process = warm.Popen(
                [*PMAGENT, *arguments], cwd=workspace, env=environment, stdin=slave, stdout=subprocess.PIPE,
                stderr=slave, terminal=True,
            )
            os.close(slave)
        else:
            self.process = warm.Popen(
                [*PMAGENT, *arguments], cwd=workspace, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            )
            assert self.process.stderr is not None
            self.notes = os.dup(self.process.stderr.fileno())

    def until(self, word: str) -> str:
        """Read stderr until ``word`` stands in it (in what can be seen, on a terminal)."""
        return self.wait(lambda shown: word in shown, word)

    def wait(self, holds: Callable[[str], bool], what: str = "it") -> str:
        """Read stderr until ``holds`` of it; all of it so far."""
        deadline = time.monotonic() + SECONDS
        while not holds(self.shown):
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"{what} did not come: {self.shown}")
        return self.shown

    @property
    def shown(self) -> str:
        """The text on stderr so far."""
        return self.screen.text if self.screen else self.said.decode(errors="replace")

    def type(self, text: str) -> None:
        """Type into the terminal."""
        os.write(self.notes, text.encode())

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> Ran:
        """Wait for its end."""
        while self._read():
            pass
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        return Ran(self.process.wait(timeout=SECONDS), out, self.said)

    def close(self) -> None:
        """Leave nothing of it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=SECONDS)
        os.close(self.notes)

    def _read(self) -> bool:
        readable, _, _ = select.select([self.notes], [], [], SECONDS)
        if not readable:
            raise AssertionError(f"nothing comes any more: {self.shown}")
        try:
            part = os.read(self.notes, 65536)
        except OSError:  # a terminal whose program has ended
            return False
        self.said += part
        if self.screen and part:
            self.screen.feed(part)
        return bool(part)


@contextmanager
def started(
    workspace: Path, *arguments: str, terminal: tuple[int, int] | None = None, environ: Mapping[str, str] | None = None,
) -> Iterator[Started]:
    """A command for the length of a block; killed at its end if it still runs."""
    with closing(Started(workspace, *arguments, terminal=terminal, environ=environ)) as command:
        yield command


def in_workspace(workspace: Path, plan: str, config: str = "") -> Path:
    """Write a plan, and a configuration that lets it use a few more programs; the workspace."""
    (workspace / "plan.yaml").write_text(plan)
    tools = "whitelist_tools: [echo, cat, ls, sleep, sh]\n"
    (workspace / "orchestra.config.yaml").write_text(f'version: "1.0"\n{tools}{config}')
    return accepted(workspace)


QUICK = """
- {task_id: hello, intent: say hello, tools: [echo], inputs: {args: [hello]}}
- {task_id: look, intent: read it, tools: [cat], depends_on: [hello], inputs: {args: [/inputs/hello/stdout]}}
"""
LONG = """
- {task_id: first, intent: be quick, tools: [echo], inputs: {args: [hello]}}
- {task_id: nap, intent: take long, tools: [sleep], depends_on: [first], inputs: {args: ["600"]}}
- {task_id: after, intent: never, tools: [echo], depends_on: [nap]}
"""


@pytest.fixture(params=["daemon", "alone"])
def daemon(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Daemon | None]:
    """With a daemon, and without."""
    if request.param == "alone":
        yield None
        return
    with running(workspace) as there:
        yield there


def latest(workspace: Path) -> dict[str, Any]:
    """The newest run."""
    runs: list[dict[str, Any]] = pmagent(workspace, "runs", "--format", "json").document["runs"]
    return runs[0]
