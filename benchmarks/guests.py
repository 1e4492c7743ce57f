"""Verdicts on agents' calls through the guest socket: each is recorded and durable before it is answered.

A real daemon, and 100 agents in a process of their own. Each asks, waits for its verdict, and asks again: first as
fast as it is answered, which is the rate; then at a tenth of that rate, which is how long a verdict takes that does not
stand behind 99 others. Every call has a connection of its own, as a hook's has. One call in four is denied, the others
are allowed by a rule; half are command lines.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Bench, Row, Spread, child, percentile
from pmagent.workspace.layout import Layout
from pmagent.workspace.surfaces import init_workspace
from pmagent.workspace.trust import accept

AGENTS = 100
POLICY = """\
version: 1
deny: ["Bash(rm *)", "Read(./secret/**)"]
allow: ["Bash(git status *)", "Bash(head *)", "Read(./**)"]
"""
CALLS = (
    ("Bash", {"command": "git status --short | head -n 5", "description": "Look what has changed"}),
    ("Read", {"file_path": "src/module.py"}), ("Bash", {"command": "rm -rf build"}),
    ("Read", {"file_path": "README.md"}),
)  # fmt: skip


def run(bench: Bench) -> list[Row]:
    """Three rounds of each, in turns."""
    rates, calm = [], []
    with _daemon(bench.folder) as workspace:
        address = str(Layout(workspace).guest_socket)
        for _ in range(bench.runs):
            each = bench.count(200, 2)
            rates.append(child("guests", address, workspace, each, 0))
            calm.append(child("guests", address, workspace, bench.count(40, 2), rates[-1]["rate"] / 10))
    rate = Spread.of([one["rate"] for one in rates])
    p99 = Spread.of([one["p99"] * 1e3 for one in calm])
    full = Spread.of([one["p99"] * 1e3 for one in rates]).median
    return [
        Row(
            what=f"guests: verdicts through the socket, {AGENTS} agents, each durable before it is answered",
            figure=rate, unit="verdicts/s", target=">= 5,000/s", reached=rate.median >= 5_000,
            note=f"p99 {full:.1f} ms at this rate, at which each stands behind 99 others",
        ),
        Row(
            what=f"guests: a verdict, {AGENTS} agents at a tenth of that rate, p99", figure=p99, unit="ms",
            target="< 20 ms", reached=p99.median < 20,
        ),
    ]  # fmt: skip


@contextmanager
def _daemon(folder: Path) -> Iterator[Path]:
    workspace = folder / "guests"
    workspace.mkdir(parents=True)
    os.environ["XDG_STATE_HOME"] = str(folder / "guests-state")
    subprocess.run(["git", "init", "-q", "-b", "main", str(workspace)], check=True)
    init_workspace(workspace)
    (workspace / ".pmagent" / "policy.yaml").write_text(POLICY)
    accept(workspace)
    environ = {**os.environ, "PMAGENT_CONSOLE_ENABLED": "false"}
    command = [sys.executable, "-m", "pmagent", "--workspace", str(workspace), "up"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
        try:
            end = time.monotonic() + 60
            while not Layout(workspace).guest_socket.exists():
                assert time.monotonic() < end, "the daemon does not come up"
                time.sleep(0.05)
            yield workspace
        finally:
            up.terminate()
            up.wait()


async def _agents(address: str, workspace: str, each: int, rate: float) -> dict[str, Any]:
    times: list[float] = []
    ends: list[float] = []
    start = time.perf_counter()
    await asyncio.gather(*(_agent(address, workspace, n, each, rate, times, ends) for n in range(AGENTS)))
    took = max(ends) - start
    return {"rate": len(times) / took, "p50": percentile(times, 0.5), "p99": percentile(times, 0.99)}


async def _agent(
    address: str, workspace: str, number: int, each: int, rate: float, times: list[float], ends: list[float]
) -> None:
    session, pause = f"bench-{os.getpid()}-{number}", AGENTS / rate if rate else 0.0
    lines = [_line(session, workspace, n) for n in range(each)]
    denied = [n % len(CALLS) == 2 for n in range(each)]
    due = time.perf_counter() + pause * number / AGENTS
    for line, deny in zip(lines, denied, strict=True):
        if pause:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += pause
        began = time.perf_counter()
        answer = await _answer(address, line)
        times.append(time.perf_counter() - began)
        assert (b'"exit":2' in answer) == deny, answer
    ends.append(time.perf_counter())
    await _answer(address, _said("SessionEnd", {"session_id": session, "cwd": workspace, "reason": "exit"}))


async def _answer(address: str, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(address)
    writer.write(line)
    await reader.readuntil(b"\n")
    answer = await reader.readuntil(b"\n")
    writer.close()
    return answer


def _line(session: str, workspace: str, n: int) -> bytes:
    tool, given = CALLS[n % len(CALLS)]
    payload = {
        "session_id": session, "cwd": workspace, "hook_event_name": "PreToolUse", "permission_mode": "default",
        "tool_name": tool, "tool_use_id": f"toolu_{session}_{n}", "tool_input": given,
    }  # fmt: skip
    return _said("PreToolUse", payload)


def _said(event: str, payload: dict[str, Any]) -> bytes:
    line = {"payload": payload, "v": 1, "harness": "claude", "event": event, "mode": "enforce", "wait": 0.0,
            "version": "2.1.330"}  # fmt: skip
    return json.dumps(line).encode() + b"\n"


if __name__ == "__main__":
    made = _agents(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    print(json.dumps(asyncio.run(made)))
