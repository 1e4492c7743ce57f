"""An agent for tests: a process of its own, whose hooks are the real one, and which may also run commands.

``python -I guest_agent.py HOOK DATA``: each line of its input is ``{"event", "mode", "wait", "payload"}`` or
``{"command"}``; each answer is ``{"code", "out", "err"}``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Said(NamedTuple):
    """How a hook, or a command, ended."""

    code: int
    out: str
    err: str


class Agent:
    """A session of an agent; its process."""

    def __init__(self, workspace: Path, session: str) -> None:
        from pmagent.guests import hook
        from tests.support.commands import clean_environment

        self.session = session
        self._cwd = workspace
        self._calls = 0
        self._begun = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(hook.__file__), str(workspace / ".pmagent/data")], cwd=workspace,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean_environment(),
        )

    def hook(self, event: str, mode: str = "enforce", wait: float = 0, **payload: Any) -> Said:
        """Its hook is told of an event."""
        self.begin(event, mode, wait, **payload)
        return self.answer()

    def begin(self, event: str, mode: str = "enforce", wait: float = 0, **payload: Any) -> None:
        """``hook``, whose answer is waited for later. A gated session says first that it begins."""
        if event == "PreToolUse" and mode == "enforce" and not self._begun:
            self.hook("SessionStart", mode, source="startup")
        self._begun = self._begun or event == "SessionStart"
        told = {"session_id": self.session, "cwd": str(self._cwd), **payload}
        self._tell({"event": event, "mode": mode, "wait": wait, "payload": told})

    def call(self, tool: str, mode: str = "enforce", wait: float = 0, **tool_input: Any) -> Said:
        """It wants to call a tool."""
        self._calls += 1
        return self.hook("PreToolUse", mode, wait, tool_name=tool, tool_use_id=f"t{self._calls}", tool_input=tool_input)

    def returned(self, tool: str, call: int = 0, **fields: Any) -> Said:
        """A tool has returned: that of its newest call."""
        given = {"tool_name": tool, "tool_use_id": f"t{call or self._calls}", "tool_input": {}, "tool_response": {}}
        return self.hook("PostToolUse", **{**given, **fields})

    def command(self, *words: str) -> Said:
        """It runs a command, as its shell would."""
        self._tell({"command": words})
        return self.answer()

    def _tell(self, line: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Said:
        """The answer to what was begun."""
        assert self._process.stdout is not None
        return Said(**json.loads(self._process.stdout.readline()))

    def close(self, *, kill: bool = False) -> None:
        """It ends; ``kill``: at once, whatever its hook waits for."""
        if kill:
            self._process.kill()
        self._process.communicate(timeout=60)


@contextmanager
def agent(workspace: Path, session: str = "s") -> Iterator[Agent]:
    """An agent for the length of a block."""
    made = Agent(workspace, session)
    try:
        yield made
    except BaseException:
        made.close(kill=True)
        raise
    made.close()


def main(hook: str, data: str) -> None:
    """See the module."""
    for line in sys.stdin:
        told = json.loads(line)
        if "command" in told:
            words, given = told["command"], ""
        else:
            words = [sys.executable, "-I", "-S", hook, "claude", told["event"], told["mode"], str(told["wait"]), data]
            given = json.dumps(told["payload"])
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=120, check=False)
        sys.stdout.write(json.dumps({"code": done.returncode, "out": done.stdout, "err": done.stderr}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
