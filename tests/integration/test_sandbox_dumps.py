"""The limit on core dumps reaches what the first process of a sandbox has started already."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from actors.orchestra.processes import Inside

STARTS_ONE = """
import subprocess, sys
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_a_process_that_was_started_before_has_the_limit_too() -> None:
    first = subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdin is not None
    assert first.stdout is not None
    try:
        child = int(first.stdout.readline())
        inside = Inside(first.pid, os.pidfd_open(first.pid))
        inside.undumped()
        assert [resource.prlimit(pid, resource.RLIMIT_CORE) for pid in (first.pid, child)] == [(1, 1), (1, 1)]
        inside.close()
    finally:
        first.stdin.close()
        first.wait()
        first.stdout.close()
