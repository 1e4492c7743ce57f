"""What the limit on core dumps rests on: a sandbox's first process starts no other before it is let."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

from actors.orchestra.bubblewrap import bubblewrap
from tests.support.boxes import real_boxes

pytestmark = real_boxes
SECONDS = 20.0


def waits_at(pid: int, descriptor: int) -> bool:
    """Whether a process waits for something to read (proc(5), /proc/pid/syscall)."""
    return Path(f"/proc/{pid}/syscall").read_text().startswith(f"0 {descriptor:#x} ")


def children(pid: int) -> str:
    """Those that it has started."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


def test_bubblewrap_starts_nothing_inside_before_a_byte_comes() -> None:
    reading, gate = os.pipe()
    status, report = os.pipe()
    options = ["--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"]
    given = ["--json-status-fd", str(report), "--block-fd", str(reading)]
    command = ["/bin/sh", "-c", "read -r go"]
    with subprocess.Popen(
        [bubblewrap(), *options, *given, "--", *command], stdin=reading, pass_fds=(report, reading)
    ) as monitor:
        os.close(report)
        first = json.loads(os.read(status, 4096))["child-pid"]
        deadline = time.monotonic() + SECONDS
        while not waits_at(first, reading):
            assert time.monotonic() < deadline
        assert not children(first)
        os.write(gate, b".")
        while not children(first):
            assert time.monotonic() < deadline
        os.write(gate, b"\n")
        assert monitor.wait(SECONDS) == 0, "one byte was taken, and the program got its line"
    for descriptor in (reading, gate, status):
        os.close(descriptor)
