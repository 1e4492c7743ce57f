"""The grounds of the limit on core dumps: a sandbox's first process starts no other before it is let; and what is left
where it cannot be set."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from pmagent.actors.sandbox.bubblewrap import bubblewrap
from pmagent.actors.sandbox.pid_namespace import PidNamespace
from pmagent.actors.sandbox.spec import SandboxUnavailable
from tests.support.sandboxes import needs_sandbox, output_of, sandboxed

pytestmark = needs_sandbox
SECONDS = 120.0
READ = {"x86_64": 0, "aarch64": 63}
"""The number of the call."""


def waits_at(pid: int, descriptor: int) -> bool:
    """Whether a process waits for something to read (proc(5), /proc/pid/syscall)."""
    return Path(f"/proc/{pid}/syscall").read_text().startswith(f"{READ[os.uname().machine]} {descriptor:#x} ")


def children(pid: int) -> str:
    """Those that it has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


def test_bubblewrap_starts_nothing_inside_before_a_byte_comes() -> None:
    reading, gate = os.pipe()
    status, report = os.pipe()
    told = os.fdopen(status, "rb")
    options = ["--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"]
    given = ["--json-status-fd", str(report), "--block-fd", str(reading)]
    command = ["/bin/sh", "-c", "read -r go"]
    with subprocess.Popen(
        [bubblewrap(), *options, *given, "--", *command], stdin=reading, pass_fds=(report, reading)
    ) as monitor, ExitStack() as ends:
        ends.callback(monitor.kill)  # after a failure nobody would write to the gate, and it waits for that
        os.close(report)
        first = json.loads(told.readline())["child-pid"]  # which comes in several pieces
        deadline = time.monotonic() + SECONDS
        while not waits_at(first, reading):
            assert time.monotonic() < deadline
        assert not children(first)
        os.write(gate, b".")
        while not children(first):
            assert time.monotonic() < deadline
        os.write(gate, b"\n")
        assert monitor.wait(SECONDS) == 0, "one byte was taken, and the program got its line"
    told.close()
    for descriptor in (reading, gate):
        os.close(descriptor)


def pidfds() -> int:
    """How many handles of processes this process holds."""
    held = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
    return held.count("anon_inode:[pidfd]")


def test_a_sandbox_that_is_not_kept_in_hand_leaves_no_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: PidNamespace) -> bool:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    output_of(tmp_path, "print(1)")
    before = pidfds()
    monkeypatch.setattr(PidNamespace, "undumped", fail)
    for _ in range(3):
        with pytest.raises(SandboxUnavailable, match="Too many open files"):
            sandboxed(tmp_path, "print(1)")
    assert pidfds() == before
