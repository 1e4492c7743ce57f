"""The fault matrix: an error, or SIGKILL, at each system call that a short run of a writer makes on the log's files.

strace injects them. After each run the log is verified and opened again: what was acknowledged is there.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from events.disk import RealDisk
from events.errors import NotFound
from events.reader import event_at
from events.verify import verify_log
from tests.crash.short_writer import LOG_ID
from tests.support.logs import BatchWriter, draft, open_segments

CALLS = (
    "openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "ftruncate", "close", "chmod", "unlink", "mkdir",
)
TAKES_SPACE = ("openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "mkdir")
NEW, TORN = "a new log", "a log with a torn tail"
PROGRAM = Path(__file__).with_name("short_writer.py")
ROOT = Path(__file__).resolve().parents[2]
TRACED = re.compile(r"(?:\[pid +\d+\] )?(\w+)\((.*)")


@cache
def bytecode() -> str:
    """A folder with the compiled modules of the short writer, which no other process adds to: each run then makes the
    same calls, in the same order, as the one that they were counted in."""
    folder = Path(tempfile.mkdtemp(prefix="bytecode-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(writer(str(folder), folder / "log"), check=True, capture_output=True, timeout=60)
    return str(folder)


def writer(compiled: str, folder: Path) -> list[str]:
    """The short writer's command line."""
    options = ["-S", "-E", "-s", "-X", f"pycache_prefix={compiled}"]
    return [sys.executable, *options, str(PROGRAM), str(folder), str(ROOT), sysconfig.get_path("platlib")]


def trace(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the short writer under strace."""
    program = writer(bytecode(), folder)
    calls = f"trace={','.join(CALLS)}"
    return subprocess.run(
        ["strace", "-y", "-s", "256", "-e", calls, "-e", "signal=none", *options, "--", *program],
        capture_output=True, text=True, check=False, timeout=60,
    )


@cache
def can_trace() -> str:
    """Why strace cannot be used here; "" when it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-e", "trace=none", "true"], capture_output=True, text=True, check=False)
    return f"strace may not trace here: {tried.stderr.strip()}" if tried.returncode else ""


def prepare(kind: str, workspace: Path) -> Path:
    """The log's folder as the run finds it."""
    folder = workspace / ".pmagent" / "log"
    if kind == TORN:
        storage = open_segments(RealDisk(), 1000, LOG_ID, str(folder))
        writer = BatchWriter(storage)
        writer.create(LOG_ID)
        for number in range(4):
            writer.write([draft(number, 120)])
        storage.close()
        with open(max(folder.glob("*.jsonl")), "ab") as newest:
            newest.write(b'{"position":6,"batch":6,"time":"2026')
    return folder


def calls_on_the_log(kind: str, workspace: Path) -> list[tuple[str, int]]:
    """Each call of a clean run on the log's files: its name, and its number among the calls of that name."""
    folder = prepare(kind, workspace)
    clean = trace(folder)
    assert clean.returncode == 0, clean.stderr[-2000:]
    count: Counter[str] = Counter()
    found = []
    for line in clean.stderr.splitlines():
        match = TRACED.match(line)
        if match is not None:
            count[match[1]] += 1
            if str(workspace) in match[2].replace(str(PROGRAM), ""):
                found.append((match[1], count[match[1]]))
    return found


def assert_nothing_lost(folder: Path, told: str, where: str) -> None:
    """The log verifies and opens, and holds what was acknowledged, which ``told`` says."""
    acknowledged = [line.split() for line in told.splitlines()]
    if acknowledged or (folder / "HEAD").exists():
        try:
            assert verify_log(str(folder)).finding is None, where
        except NotFound:
            assert not acknowledged, where
    storage = open_segments(RealDisk(), 1000, LOG_ID, str(folder))
    for position, expected in acknowledged:
        assert event_at(storage, int(position)).sum == expected, where
    writer = BatchWriter(storage)
    if storage.tail().position == 0:
        writer.create(LOG_ID)
    writer.write([draft(99)])
    storage.close()
    result = verify_log(str(folder), decode=True)
    assert result.ok, where
    assert not result.beyond_bytes, where


@pytest.mark.slow
@pytest.mark.parametrize("action", ["error=EIO", "error=ENOSPC", "signal=KILL"])
@pytest.mark.parametrize("kind", [NEW, TORN])
def test_a_fault_at_each_system_call_loses_nothing(kind: str, action: str, tmp_path: Path) -> None:
    if reason := can_trace():
        pytest.skip(reason)
    calls = calls_on_the_log(kind, tmp_path / "clean")
    needed = {"openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "close", "chmod"}
    assert needed <= {name for name, _ in calls}
    assert kind == NEW or "ftruncate" in {name for name, _ in calls}
    if action == "error=ENOSPC":
        calls = [call for call in calls if call[0] in TAKES_SPACE]
    struck = 0
    for name, number in calls:
        workspace = tmp_path / f"{name}-{number}"
        folder = prepare(kind, workspace)
        run = trace(folder, "-e", f"inject={name}:{action}:when={number}")
        where = f"{action} at {name} number {number}"
        assert run.returncode in ({-9} if "KILL" in action else {0, 70}), f"{where}: {run.stderr[-2000:]}"
        struck += "INJECTED" in run.stderr or run.returncode == -9
        assert_nothing_lost(folder, run.stdout, where)
        shutil.rmtree(workspace)
    assert struck == len(calls), "each fault must have happened"
