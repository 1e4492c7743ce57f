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
import sys
from functools import partial
from pathlib import Path
from typing import Any

from pmagent.actors.kernel import reader
from pmagent.actors.oa.context import PATH
from pmagent.actors.oa.effects import write_context as perform
from pmagent.oa.context import look, write_context
from pmagent.oa.tools import OAToolError
from tests.support.forked import Fork, kill_at_call, serve

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
    kill_at_call(number, CALLS)
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


def play(workspace: Path, line: str) -> str:
    """Fork a writer, kill one that lives, and say the last number that it was told of, and how it ended."""
    kind, word = line.split()
    number = int(word)
    writer = Fork(partial(step if kind == "step" else live, workspace, number))
    if kind == "live":
        draw = random.Random(number)
        writer.has_reported(1 + draw.randrange(3))  # that it began, and what it was told; however slow the machine is
        writer.kill(draw.random() * 0.4)
    code, lines = writer.end()
    last = (lines or ["began"])[-1]
    return f"{-1 if last == 'began' else last} {code}"


if __name__ == "__main__":
    serve(partial(play, Path(sys.argv[1])))
