"""Processes that tests start warm are what executed ones would be."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support import warm
from tests.support.cases import each
from tests.support.terminals import open_pty

PYTHON = [sys.executable, "-I", "-c"]
# SIGHUP, SIGINT and SIGQUIT, the first three, may be ignored here; never in a warm process.
FACTS = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
given = subprocess.run(["printenv", "GIVEN"], capture_output=True).stdout.hex()
print(json.dumps({
    "parent": os.getppid(), "argv": sys.argv, "name": __name__, "file": globals().get("__file__"),
    "environment": sorted(os.environ.items()), "in C": given,
    "cwd": os.getcwd(), "umask": status["Umask"], "zone": time.tzname,
    "descriptors": [n for n in range(100) if Path(f"/proc/self/fd/{n}").is_symlink()],
    "leads": os.getsid(0) == os.getpid(), "group": os.getpgid(0), "threads": status["Threads"],
    "blocked": status["SigBlk"], "ignored": int(status["SigIgn"], 16) & ~7, "caught": int(status["SigCgt"], 16) & ~7,
    "streams": [[one.encoding.lower(), one.errors, one.line_buffering, one.newlines, one.isatty(), one.fileno()]
                for one in (sys.stdin, sys.stdout, sys.stderr)],
    "path": sys.path, "flags": list(sys.flags), "main": sys.modules["__main__"].__name__,
}))
"""
CODE = "import os; os.write(1, b'x'); "


def facts(how: Any, folder: Path, **more: Any) -> dict[str, Any]:
    """The account that a process started so gives of itself."""
    environment = {**os.environ, "GIVEN": "ä \udcff", "TZ": "Asia/Tokyo"}
    done = how([*PYTHON, FACTS, "one", "zwei ä"], cwd=folder, env=environment, capture_output=True, **more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def pair() -> Any:
    """Two ends of a line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_it_is_what_an_executed_process_is(tmp_path: Path, pair: tuple[socket.socket, socket.socket]) -> None:
    keep = [pair[1].fileno()]
    for more in ({}, {"start_new_session": True}, {"pass_fds": keep}, {"umask": 0o27}, {"process_group": 0}):
        forked, executed = facts(warm.run, tmp_path, **more), facts(subprocess.run, tmp_path, **more)
        if "process_group" in more or "start_new_session" in more:
            assert forked.pop("group") != executed.pop("group")
        assert forked == executed, more
    assert forked["parent"] == os.getpid()


def test_it_is_a_process_of_its_own_and_a_child_of_this_one() -> None:
    with warm.Popen([*PYTHON, "import os; print(os.getpid(), flush=True); input()"], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        assert str(process.pid) in children
        assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.kill()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("code", "status", "out", "errors"), [
    ("", 0, b"x", b""),
    ("raise SystemExit", 0, b"x", b""),
    ("raise SystemExit(3)", 3, b"x", b""),
    ("raise SystemExit(-1)", 255, b"x", b""),
    ("raise SystemExit(True)", 1, b"x", b""),
    ("raise SystemExit('no')", 1, b"x", b"no\n"),
    ("1 / 0", 1, b"x", b"ZeroDivisionError"),
    ("raise KeyboardInterrupt", -signal.SIGINT, b"x", b"KeyboardInterrupt"),
    ("os.kill(os.getpid(), 15)", -signal.SIGTERM, b"x", b""),
    ("print('y', end='')", 0, b"xy", b""),
    ("import atexit; atexit.register(os.write, 1, b'z')", 0, b"xz", b""),
    ("import threading, time; threading.Timer(0.05, os.write, (1, b'z')).start()", 0, b"xz", b""),
    ("os.close(1); print(end='y')", 120, b"x", b"Bad file descriptor"),
])
def test_it_ends_as_an_executed_process_ends(code: str, status: int, out: bytes, errors: bytes) -> None:
    for run in (warm.run, subprocess.run):
        done = run([*PYTHON, CODE + code], capture_output=True)
        assert (done.returncode, done.stdout) == (status, out)
        assert errors in done.stderr
        assert bool(done.stderr) == bool(errors)


@each("ignored", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_its_signals_are_heeded_where_ours_are_ignored(ignored: signal.Signals) -> None:
    before = signal.signal(ignored, signal.SIG_IGN)
    try:
        with warm.Popen([*PYTHON, "import time; print(flush=True); time.sleep(600)"], stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(ignored)
    finally:
        signal.signal(ignored, before)
    assert process.returncode == -ignored


def test_it_reads_what_it_is_given() -> None:
    assert warm.run([*PYTHON, "print(input())"], input="ä\nb", capture_output=True, text=True).stdout == "ä\n"


def test_a_module_finds_its_arguments() -> None:
    done = warm.run([sys.executable, "-I", "-m", "json.tool", "--compact"], input=b"[1, 2]", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"[1,2]\n")
    assert warm.run([sys.executable, "-I", "-m", "there.is.none"], capture_output=True).returncode == 1


def test_a_terminal_becomes_its_own() -> None:
    master, slave = open_pty(80, 24)
    shown = "import os, signal; assert os.getsid(0) == os.getpid() == os.tcgetpgrp(0); "
    shown += "signal.signal(signal.SIGINT, signal.SIG_DFL); input('> ')"
    process = warm.Popen([*PYTHON, shown], stdin=slave, stdout=slave, stderr=slave, terminal=True)
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 1000):
            seen += part
            if seen == b"> ":
                os.write(master, b"\x03")
    except OSError:  # its end
        pass
    os.close(master)
    assert process.wait() == -signal.SIGINT, seen


def test_a_folder_that_is_not_there_is_an_error_here(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        warm.run([*PYTHON, ""], cwd=tmp_path / "none")
    with tempfile.NamedTemporaryFile() as file, pytest.raises(NotADirectoryError):
        warm.run([*PYTHON, ""], cwd=file.name)


def test_a_long_request_is_executed_all_the_same() -> None:
    done = warm.run([*PYTHON, "import sys; print(len(sys.argv[1]))", "x" * 110_000], capture_output=True)
    assert done.stdout == b"110000\n"


def test_time_runs_out_and_the_process_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run([*PYTHON, "import time; time.sleep(1000)"], timeout=0.1)


def test_modules_are_found_loaded_and_others_are_not() -> None:
    shown = [*PYTHON, "import sys; print('this' in sys.modules, 'pmagent.cli.app' in sys.modules)"]
    assert warm.run(shown, capture_output=True).stdout == b"False True\n"
    warm.preload("colorsys")
    assert warm.run([*PYTHON, "import sys; assert 'colorsys' in sys.modules"]).returncode == 0
