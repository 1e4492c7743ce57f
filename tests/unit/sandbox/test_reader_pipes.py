"""Talking with a process: all that it says is heard, and nothing of it is alive afterwards."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from pmagent.actors.sandbox.reader.pipes import Conversation


def started(script: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, bufsize=0
    )


def heard_out(talk: Conversation) -> None:
    until = time.monotonic() + 30
    while talk.goes_on(0.05):
        assert time.monotonic() < until


def is_alive(pid: str) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_much_is_said_both_ways_at_once() -> None:
    said = bytes(range(256)) * 20_000
    with Conversation(started("cat"), said, 10) as talk:
        heard_out(talk)
    assert bytes(talk.output) == said


def test_of_what_is_told_beside_the_end_is_kept() -> None:
    with Conversation(started("yes 0123456789 | head -n 100000 >&2; printf end >&2"), b"", 8) as talk:
        heard_out(talk)
    assert bytes(talk.stderr_tail) == b"6789\nend"


def test_a_process_that_does_not_listen_is_heard() -> None:
    with Conversation(started("exec <&-; printf said"), b"x" * 2**20, 10) as talk:
        heard_out(talk)
    assert bytes(talk.output) == b"said"


def test_one_that_closes_its_ends_is_waited_for() -> None:
    process = started("exec tail -f /dev/null >/dev/null 2>&1 </dev/null")
    with Conversation(process, b"", 10) as talk:
        assert all(talk.goes_on(0.02) for _ in range(10))
    assert process.returncode == -9


def test_who_inherits_the_pipes_is_not_waited_for_and_ends_too() -> None:
    with Conversation(started("sleep 600 & echo $!"), b"", 10) as talk:
        heard_out(talk)
    child = bytes(talk.output).decode().strip()
    until = time.monotonic() + 10
    while is_alive(child):
        assert time.monotonic() < until


def test_all_that_a_process_said_before_it_ended_is_heard() -> None:
    process = started("exec head -c 60000 /dev/zero")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # everything is in the pipe, and it has ended
    with Conversation(process, b"", 10) as talk:
        heard_out(talk)
    assert len(talk.output) == 60_000


def test_it_is_killed_when_talking_fails() -> None:
    process = started("echo; exec tail -f /dev/null")

    def interrupted() -> None:
        with Conversation(process, b"", 10) as talk:
            assert talk.goes_on(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert process.returncode == -9


def test_no_descriptor_is_left_open() -> None:
    def open_ones() -> set[str]:
        return {path.name for path in Path("/proc/self/fd").iterdir()}

    before = open_ones()
    for _ in range(3):
        with Conversation(started("cat; exit 3"), b"x", 10) as talk:
            heard_out(talk)
    assert len(open_ones()) <= len(before)
