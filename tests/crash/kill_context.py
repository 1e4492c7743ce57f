"""Writers of CONTEXT.json to be killed; each is a process of its own, made by fork so that many rounds take seconds.

Started by ``test_context_kill.py`` as ``python -m tests.crash.kill_context WORKSPACE``. For each line on stdin one
writer runs and ends, and one line on stdout says how:

``step N``   performs the write of ``CONTEXT`` on the file as it is, and kills itself ahead of its Nth system call
``live N``   asks for one context after another, through the log, until it is killed at a moment drawn from N, after
             none, one or two were told to be written; the answer begins with the number of the last one that was
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmagent.actors.kernel import reader
from pmagent.actors.oa.context import PATH
from pmagent.actors.oa.effects import write_context as perform
from pmagent.oa.context import look, write_context
from pmagent.oa.tools import OAToolError

CONTEXT = {"active_goal": "the new one", "notes": ["x" * 1000] * 100}
CALLS = ("open", "mkdir", "fsync", "fchmod", "replace", "close", "readlink")
"""The system calls, as the module ``os`` has them, of a write."""


def numbered(number: int) -> dict[str, Any]:
    """The context that has this number; of any size."""
    return {"active_goal": f"goal {number}", "notes": ["x" * 100] * (number % 7 * 300)}


def step(workspace: Path, number: int, _told: int) -> None:
    """See ``step N``."""
    path = workspace / PATH
    base = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    left = [number]

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return called

    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name)))
    perform(workspace, 1, CONTEXT, base)


def live(workspace: Path, number: int, told: int) -> None:
    """See ``live N``."""
    reader.QUIET_S = 0.0  # nobody else writes here, and a writer that waits is not worth killing
    os.write(told, b"began\n")
    for n in range(number * 1000, number * 1000 + 1000):
        try:
            write_context(numbered(n), workspace, base=look(workspace).sha256)
        except OAToolError:  # what the process before it left to do was done in between
            continue
        os.write(told, f"{n}\n".encode())


def play(act: Callable[[Path, int, int], None], workspace: Path, number: int, kill_within: float) -> str:
    """Fork a writer, kill it (``kill_within`` > 0: within so many seconds), and say what it told and how it ended."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        try:
            act(workspace, number, write_end)
            os._exit(0)
        finally:  # it never returns
            traceback.print_exc()
            os._exit(70)
    os.close(write_end)
    told = b""
    if kill_within:
        draw = random.Random(number)
        wanted = 1 + draw.randrange(3)  # lines: that it began, and what it was told; however slow the machine is
        while told.count(b"\n") < wanted and (more := os.read(read_end, 1 << 16)):
            told += more
        time.sleep(draw.random() * kill_within)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    while more := os.read(read_end, 1 << 16):
        told += more
    os.close(read_end)
    last = (told.decode().split("\n")[:-1] or ["began"])[-1]
    return f"{-1 if last == 'began' else last} {os.waitstatus_to_exitcode(status)}"


def main() -> None:
    """See the module."""
    workspace = Path(sys.argv[1])
    for line in sys.stdin:
        kind, number = line.split()
        act, within = {"step": (step, 0.0), "live": (live, 0.4)}[kind]
        os.write(1, f"{play(act, workspace, int(number), within)}\n".encode())


if __name__ == "__main__":
    main()
