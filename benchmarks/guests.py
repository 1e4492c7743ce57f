"""Verdicts on agents' calls through the guest socket: each is recorded and durable before it is answered.

A real daemon, and 100 agents in a process of their own. Each asks, waits for its verdict, and asks again: first as
fast as it is answered, which is the rate; then at a tenth of that rate, which is how long a verdict takes that does not
stand behind 99 others. Every call has a connection of its own, as a hook's has. One call in four is denied, the others
are allowed by a rule; half are command lines, the same ones again and again; or, for another rate, ones that nobody
gave before.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import socket
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
    ("Bash", {"command": "git status --short | head -n {}", "description": "Look what has changed"}),
    ("Read", {"file_path": "src/module.py"}), ("Bash", {"command": "rm -rf build{}"}),
    ("Read", {"file_path": "README.md"}),
)  # fmt: skip


def run(bench: Bench) -> list[Row]:
    """Three rounds of each, in turns."""
    rates, fresh, calm = [], [], []
    with _daemon(bench.folder) as (workspace, daemon):
        address = str(Layout(workspace).guest_socket)
        for _ in range(bench.runs):
            rates.append(child("guests", address, workspace, daemon, bench.count(100, 2), 0, ""))
            fresh.append(child("guests", address, workspace, daemon, bench.count(100, 2), 0, "new"))
            tenth = rates[-1]["rate"] / 10
            calm.append(child("guests", address, workspace, daemon, bench.count(10, 2), tenth, ""))
    rate = Spread.of([one["rate"] for one in rates])
    p99 = Spread.of([one["p99"] * 1e3 for one in calm])
    full = Spread.of([one["p99"] * 1e3 for one in rates]).median
    spent, agents = (Spread.of([one[name] * 1e6 for one in rates]).median for name in ("spent", "agents"))
    share = f"{spent:.0f} µs of processor time each, beside {agents:.0f} µs of the agents"
    new, cost = (Spread.of([one[name] for one in fresh]).median for name in ("rate", "spent"))
    share += f"; {new:,.0f}/s and {cost * 1e6:.0f} µs where each command line is another one"
    return [
        Row(
            what=f"guests: verdicts through the socket, {AGENTS} agents, each durable before it is answered",
            figure=rate, unit="verdicts/s", target=">= 5,000/s", reached=rate.median >= 5_000,
            note=f"{share}; p99 {full:.1f} ms at this rate, at which each stands behind 99 others",
        ),
        Row(
            what=f"guests: a verdict, {AGENTS} agents at a tenth of that rate, p99", figure=p99, unit="ms",
            target="< 20 ms", reached=p99.median < 20,
        ),
    ]  # fmt: skip


def _spent(process: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _daemon(folder: Path) -> Iterator[tuple[Path, int]]:
    workspace = folder / "guests"
    workspace.mkdir(parents=True)
    os.environ["XDG_STATE_HOME"] = str(folder / "guests-state")
    subprocess.run(["git", "init", "-q", "-b", "main", str(workspace)], check=True)
    init_workspace(workspace)
    (workspace / ".pmagent" / "policy.yaml").write_text(POLICY)
    (workspace / "src").mkdir()
    for name in ("README.md", "src/module.py"):
        (workspace / name).write_text("text\n")
    accept(workspace)
    environ = {**os.environ, "PMAGENT_CONSOLE_ENABLED": "false"}
    command = [sys.executable, "-m", "pmagent", "--workspace", str(workspace), "up"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
        try:
            end = time.monotonic() + 60
            while not Layout(workspace).guest_socket.exists():
                assert time.monotonic() < end, "the daemon does not come up"
                time.sleep(0.05)
            yield workspace, up.pid
        finally:
            up.terminate()
            up.wait()


class _Agent:
    """One agent: its calls one after the other, each on a connection of its own. No event loop and no streams: they
    would take as much of the machine as the daemon does."""

    def __init__(self, session: str, workspace: str, each: int, due: float, pause: float, which: str) -> None:
        self.lines = [_line(session, workspace, n, f"{which}{n}" if which else "5") for n in range(each)]
        self.first = _said("SessionStart", {"session_id": session, "cwd": workspace, "source": "startup"})
        self.last = _said("SessionEnd", {"session_id": session, "cwd": workspace, "reason": "exit"})
        self.due, self.pause = due, pause
        self.began = 0.0
        self.times: list[float] = []
        self.answer = b""

    def ask(self, address: str) -> socket.socket:
        """Send the next line."""
        self.answer, self.began = b"", time.perf_counter()
        self.due += self.pause
        return _sent(address, self.lines[len(self.times)])

    def told(self, part: bytes) -> bool:
        """Take a part of the answer; whether that was all of it."""
        self.answer += part
        if self.answer.count(b"\n") < 2:
            assert part, self.answer
            return False
        assert (b'"exit":2' in self.answer) == (len(self.times) % len(CALLS) == 2), self.answer
        self.times.append(time.perf_counter() - self.began)
        return True


def _begin(address: str, session: str, workspace: str) -> None:
    """A session begins: without that its calls are refused."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall(_said("SessionStart", {"session_id": session, "cwd": workspace, "source": "startup"}))
        while connection.recv(1 << 16):
            pass


def _sent(address: str, line: bytes) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    connection.send(line)
    return connection


def _tell(address: str, lines: list[bytes]) -> None:
    """Say what nobody waits for, one after the other."""
    for line in lines:
        with _sent(address, line) as connection:
            while connection.recv(1 << 16):
                pass


def _agents(address: str, workspace: str, daemon: int, each: int, rate: float, new: str = "") -> dict[str, Any]:
    pause = AGENTS / rate if rate else 0.0
    names = [f"bench-{os.getpid()}-{number}" for number in range(AGENTS)]
    agents = [
        _Agent(name, workspace, each, pause * n / AGENTS, pause, new and name) for n, name in enumerate(names)
    ]
    for name in names:
        _begin(address, name, workspace)
    _tell(address, [agent.first for agent in agents])
    begun, spent, own = time.perf_counter(), _spent(daemon), time.process_time()
    waiting = [(agent.due, n) for n, agent in enumerate(agents)]
    heapq.heapify(waiting)
    asking: dict[int, tuple[socket.socket, int]] = {}
    poll = select.epoll()
    while waiting or asking:
        while waiting and waiting[0][0] <= time.perf_counter() - begun:
            _, n = heapq.heappop(waiting)
            connection = agents[n].ask(address)
            asking[connection.fileno()] = connection, n
            poll.register(connection, select.EPOLLIN)
        for file, _ in poll.poll(max(0.0, waiting[0][0] + begun - time.perf_counter()) if waiting else 60.0):
            connection, n = asking[file]
            if agents[n].told(connection.recv(1 << 16)):
                del asking[file]
                poll.unregister(file)
                connection.close()
                if len(agents[n].times) < len(agents[n].lines):
                    heapq.heappush(waiting, (agents[n].due if pause else 0.0, n))
    took, spent, own = time.perf_counter() - begun, _spent(daemon) - spent, time.process_time() - own
    _tell(address, [agent.last for agent in agents])
    times = [one for agent in agents for one in agent.times]
    return {
        "rate": len(times) / took, "p50": percentile(times, 0.5), "p99": percentile(times, 0.99),
        "spent": spent / len(times), "agents": own / len(times),
    }  # fmt: skip


def _line(session: str, workspace: str, n: int, which: str) -> bytes:
    tool, given = CALLS[n % len(CALLS)]
    given = {name: text.format(which) for name, text in given.items()}
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
    where, place, process, calls, pace, fresh_ones = sys.argv[1:]
    print(json.dumps(_agents(where, place, int(process), int(calls), float(pace), fresh_ones)))
