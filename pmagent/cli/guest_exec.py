"""``pmagent exec``: any program, as a guest's call."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from typing import Any, Final

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.events.errors import PmagentError

SESSION: Final = "PMAGENT_GUEST_SESSION"
"""The variable that names the session to programs that are started in it."""


_EVENTS: Final = {
    "Started": "SessionStart", "Asked": "PreToolUse", "Finished": "PostToolUse", "Ended": "SessionEnd",
}  # fmt: skip
"""Neutral shape -> the event at which a harness sends it."""


class Refused(PmagentError, exit_code=1):
    """The program was not started."""


class NobodyAsked(PmagentError, exit_code=5):
    """No daemon answers, so the program was not started."""


@command("pmagent exec -- make deploy", "pmagent exec --enforce --wait 120 -- git push origin main", format=None)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--enforce", is_flag=True, help="Start it only if the policy, or an operator, lets it [default: record].")
@click.option(
    "--wait",
    type=click.FloatRange(0, 600),
    default=20.0,
    metavar="SECONDS",
    help="With --enforce: wait so long for an operator [default: 20].",
)
@click.option("--session", metavar="ID", help=f"The session that it belongs to [default: {SESSION}, else its own].")
def execute(app: App, program: tuple[str, ...], enforce: bool, wait: float, session: str | None) -> int:
    """Run PROGRAM as a guest: the call, its verdict and its end stand in the log.

    Its input, output and exit code are its own. Exit 1: refused, 5: with --enforce, no daemon answers; then it was not
    started. Its own acts are not watched: pmagent run has it done in a sandbox."""
    named = session or app.environ.get(SESSION, "")
    guest = _Guest(app, named or f"script-{uuid.uuid4().hex[:12]}", "enforce" if enforce else "observe", wait)
    if not named:
        guest.say("Started", version="", source="exec")
    try:
        return guest.call(program)
    finally:
        if not named:
            guest.say("Ended", reason="exec")


class _Guest:
    """A session of a script."""

    def __init__(self, app: App, session: str, mode: str, wait: float) -> None:
        self._environ = {**app.environ, SESSION: session}
        self._data = str(app.layout.home)
        self._session = session
        self._mode = mode
        self._wait = wait
        self._cwd = os.getcwd()

    def call(self, program: tuple[str, ...]) -> int:
        """Ask, start, and tell how it ended. Raises Refused, NobodyAsked, OSError."""
        asked = {"call": uuid.uuid4().hex, "tool": "Bash", "tool_input": {"command": shlex.join(program)}}
        said = self.say("Asked", **asked)
        if self._mode == "enforce":
            answer = msgspec.json.decode(said.stdout or b"{}", type=dict[str, str])
            if not answer:
                raise NobodyAsked(f"it was not started: {said.stderr.decode(errors='replace').strip()}", "pmagent up")
            if said.returncode != 0 or answer["answer"] != "allow":
                raise Refused(answer["reason"], "pmagent approvals; pmagent policy explain")
        began = time.monotonic()
        try:
            code = _run(program, self._environ)
        except OSError as error:
            self.say("Finished", **asked, ok=False, output=f"not started: {error.strerror}", duration_ms=0)
            what = f"{program[0]} cannot be started: {error.strerror}"
            raise Refused(what, "name a program that is there") from error
        took = int((time.monotonic() - began) * 1000)
        self.say("Finished", **asked, ok=code == 0, output=f"exit {code}", duration_ms=took)
        return code

    def say(self, type: str, **fields: Any) -> subprocess.CompletedProcess[bytes]:
        """Have the hook say it to the daemon. In mode observe it waits in the spool where none answers."""
        from pmagent.guests import hook

        payload = {"type": type, "session": self._session, "cwd": self._cwd, **fields}
        wait = self._wait if type == "Asked" else 0.0
        words = [sys.executable, "-I", "-S", hook.__file__, "script", _EVENTS[type], self._mode, str(wait), self._data]
        return subprocess.run(words, input=msgspec.json.encode(payload), capture_output=True, check=False)


def _run(program: tuple[str, ...], environ: dict[str, str]) -> int:
    """The exit code of a program that has our input, output and terminal. Ctrl-C is the program's."""
    with subprocess.Popen(program, env=environ) as started:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            code = started.wait()
        finally:
            signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code
