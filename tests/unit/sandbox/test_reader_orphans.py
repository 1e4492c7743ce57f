"""Walls that were cut off while they were built are ended; walls that stand are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pmagent.actors.sandbox import orphans
from pmagent.actors.sandbox.orphans import end_orphans
from tests.support.planners import all_end
from tests.support.sandboxes import needs_sandbox

SECONDS = 120.0
MODULE = f"tests.cut_off_{os.getpid()}"
"""Ours, in this process alone: every daemon that starts on this machine ends what others have left."""


@contextmanager
def waiting(module: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A bubblewrap whose inner half waits to be let go on, as while it is being built: its outer half, and a handle of
    the inner one."""
    held, release = os.pipe()
    told, tell = os.pipe()
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--info-fd", str(tell), "--block-fd", str(held)]
    with subprocess.Popen([*words, "--", "true", module], pass_fds=(held, tell), stderr=subprocess.DEVNULL) as outer:
        os.close(tell)
        said = os.read(told, 1000)
        while said and b"}" not in said:
            said += os.read(told, 1000)
        inner = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
        handle = os.pidfd_open(inner)
        try:
            yield outer, handle
        finally:
            outer.kill()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            for number in (handle, held, release, told):
                os.close(number)


@needs_sandbox
def test_what_was_cut_off_is_ended_and_what_stands_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_OURS", MODULE.encode())
    with waiting(MODULE) as (_, standing), waiting(MODULE) as (outer, left), waiting("another") as (other, foreign):
        for one in (outer, other):
            one.kill()
            one.wait()
        assert end_orphans() == 1
        assert all_end([os.dup(left)], SECONDS)
        for handle in (standing, foreign):
            signal.pidfd_send_signal(handle, 0)  # it lives
