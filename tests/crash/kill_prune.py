"""Prunings to be killed; each is a process of its own, made by fork.

Started by ``test_prune_kill.py`` as ``python -m tests.crash.kill_prune``. For ``WORKSPACE N`` on stdin a process gives
up all runs of the workspace but the newest, kills itself ahead of its Nth system call, and one line on stdout says how
it ended.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pmagent.jobs.pruning import Policy, look, prune
from pmagent.workspace.layout import Layout
from tests.support.forked import Fork, kill_at_call, serve

CALLS = ("open", "write", "pwrite", "fsync", "fdatasync", "rename", "replace", "unlink", "rmdir", "close")
POLICY = Policy(older_than=0.0, keep=1)


def act(workspace: Path, number: int, _told: int) -> None:
    """Prune, and die on the way."""
    found = look(Layout(workspace), POLICY)
    kill_at_call(number, CALLS)
    prune(workspace, POLICY, found, "ada")


def play(line: str) -> str:
    """Fork one, and say how it ended."""
    workspace, number = line.rsplit(" ", 1)
    code, _ = Fork(partial(act, Path(workspace), int(number))).end()
    return str(code)


if __name__ == "__main__":
    serve(play)
