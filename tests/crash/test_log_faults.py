"""The fault matrix: an error, or SIGKILL, at each system call that a short run of a writer makes on the log's files.

strace injects them. After each run the log is verified and opened again: what was acknowledged is there.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.errors import NotFound
from pmagent.events.reader import event_at
from pmagent.events.verify import verify_log
from tests.crash.short_writer import LOG_ID
from tests.support.effort import some
from tests.support.logs import BatchWriter, draft, open_segments

CALLS = (
    "openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "ftruncate", "close", "chmod", "unlink", "mkdir",
)
TAKES_SPACE = ("openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "mkdir")
NEW, TORN = "a new log", "a log with a torn tail"
ROOT = Path(__file__).resolve().parents[2]
TRACED = re.compile(r"(\w+)\((.*)")


class Run(NamedTuple):
    """A run that has ended: its exit code, what it told to be acknowledged, and what strace said."""

    code: int
    told: str
    traced: str


class Writers:
    """The process that forks short runs of a writer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def run(self, folder: Path, told: Path, *options: str) -> Run:
        """A run under strace."""
        self._say(json.dumps([str(folder), str(told)]))
        calls = f"trace={','.join(CALLS)}"
        tracer = ["strace", "-y", "-s", "256", "-e", calls, "-e", "signal=none", *options, "-p", str(self._hear())]
        with subprocess.Popen(tracer, stderr=subprocess.PIPE, text=True) as strace:
            assert strace.stderr is not None
            said = strace.stderr.readline()
            assert "attached" in said, said + strace.stderr.read()
            self._say("go")
            code = self._hear()
            said += strace.stderr.read()
        return Run(code, told.read_text(), said)


@contextmanager
def writers() -> Iterator[Writers]:
    """Short runs of a writer, as many as somebody wants."""
    command = [sys.executable, "-m", "tests.crash.short_writer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield Writers(process)
        assert process.stdin is not None
        process.stdin.close()


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


def calls_on_the_log(writers: Writers, kind: str, workspace: Path) -> list[tuple[str, int]]:
    """Each call of a clean run on the log's files: its name, and its number among the calls of that name."""
    clean = writers.run(prepare(kind, workspace), workspace.with_name("told"))
    assert clean.code == 0, clean.traced[-2000:]
    count: Counter[str] = Counter()
    found = []
    for line in clean.traced.splitlines():
        if (match := TRACED.match(line)) is not None:
            count[match[1]] += 1
            if str(workspace) in match[2]:
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
    with writers() as short:
        calls = calls_on_the_log(short, kind, tmp_path / "clean")
        needed = {"openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "close", "chmod"}
        assert needed <= {name for name, _ in calls}
        assert kind == NEW or "ftruncate" in {name for name, _ in calls}
        if action == "error=ENOSPC":
            calls = [call for call in calls if call[0] in TAKES_SPACE]
        for name, number in some(calls, 10):
            workspace = tmp_path / f"{name}-{number}"
            folder = prepare(kind, workspace)
            run = short.run(folder, tmp_path / "told", "-e", f"inject={name}:{action}:when={number}")
            where = f"{action} at {name} number {number}"
            assert run.code in ({-9} if "KILL" in action else {0, 70}), f"{where}: {run.traced[-2000:]}"
            assert "INJECTED" in run.traced or run.code == -9, f"{where} has not happened: {run.traced[-2000:]}"
            assert_nothing_lost(folder, run.told, where)
            shutil.rmtree(workspace)
