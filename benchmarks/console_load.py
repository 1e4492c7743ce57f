"""The console's cost to the log, and the memory that many browsers take.

A real daemon with its console process appends 1,000 facts a second, in turns without browsers and with 200 that follow
the log page, in a process of their own. Each browser checks that it is told every event, once and in order. The
benchmark compares how long an append takes until it is durable, in the daemon.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, Bench, Row, Spread, percentile
from pmagent.console.address import read
from pmagent.console.auth import operators
from pmagent.console.auth.entrance import invite
from pmagent.console.paths import ConsolePaths
from pmagent.workspace.layout import Layout
from pmagent.workspace.surfaces import init_workspace
from pmagent.workspace.trust import accept

BROWSERS = 200
RATE = 1_000
SESSIONS = 8
ROUNDS = 10
LONG = 100_000
BEHIND = 20
MIB = 1 << 20
MEMORY_MAX = 256 * MIB


class Child:
    """A process that answers each line with a line."""

    def __init__(self, module: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", *arguments], cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def answer(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None, "made with a pipe"
        line = self.process.stdout.readline()
        assert line, f"{self.process.args!r} has ended"
        found: dict[str, Any] = json.loads(line)
        assert not found.get("wrong"), found["wrong"]
        return found

    def ask(self, **command: Any) -> dict[str, Any]:
        """Its answer to a command."""
        self.tell(**command)
        return self.answer()

    def tell(self, **command: Any) -> None:
        """Begin a command; ``answer`` waits for its end."""
        assert self.process.stdin is not None, "made with a pipe"
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End its input, and wait for it."""
        assert self.process.stdin is not None, "made with a pipe"
        self.process.stdin.close()
        self.process.wait(30)


class Stage:
    """A daemon, its console, and browsers."""

    def __init__(self, daemon: Child, browsers: Child, console: int) -> None:
        self.daemon = daemon
        self.browsers = browsers
        self._console = console
        self._descriptors = len(os.listdir(f"/proc/{console}/fd"))
        self.position = 0

    def offer(self, count: int, rate: int = RATE) -> list[float]:
        """Append; seconds of each."""
        found = self.daemon.ask(offer=count, rate=rate)
        self.position = found["position"]
        return [float(one) for one in found["times"]]

    def followed(self, count: int, browsers: int) -> tuple[list[float], list[float]]:
        """Append while so many browsers follow; seconds of each append, and how late the browsers were told."""
        self.browsers.ask(open=browsers, after=self.position, read=True)
        times = self.offer(count)
        late = self.browsers.ask(until=self.position)["late"]
        self.leave()
        return times, late

    def caught_up(self, browsers: int, behind: int) -> int:
        """Bytes that the console holds when so many browsers have come and been told what they did not know."""
        self.browsers.ask(open=browsers, after=self.position - behind, read=True)
        self.browsers.ask(until=self.position)
        return self._left()

    def unread(self, browsers: int) -> int:
        """Bytes that it holds when so many want the whole log, and do not read it."""
        self.browsers.ask(open=browsers, after=1, read=False)
        before = -1.0
        while self.processor() - before > 0.01:  # until it has nothing more to do for them
            before = self.processor()
            time.sleep(0.2)
        return self._left()

    def _left(self) -> int:
        held = self.memory()
        self.leave()
        return held

    def leave(self) -> None:
        """All browsers leave; returns when the console has noticed."""
        self.browsers.ask(close=True)
        while len(os.listdir(f"/proc/{self._console}/fd")) > self._descriptors + 4:
            time.sleep(0.01)

    def memory(self, name: str = "VmRSS") -> int:
        """Bytes that the console holds (``VmHWM``: held at most)."""
        status = Path(f"/proc/{self._console}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:")) * 1024

    def processor(self) -> float:
        """Seconds of a processor that the console has taken."""
        fields = Path(f"/proc/{self._console}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


@contextmanager
def stage(folder: Path, *, quick: bool = False) -> Iterator[Stage]:
    """All of it, in ``folder``; ``quick``: it is not to wait for a processor that is free."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    init_workspace(folder)
    accept(folder)
    paths = ConsolePaths(Layout(folder))
    paths.prepare()
    who = operators.add(paths.operators, "ada", "view", None)
    daemon = Child("console_daemon", str(folder))
    position = daemon.answer()["position"]
    address = None
    while address is None or not address.port:
        address = read(paths.address)
        assert daemon.process.poll() is None, "the daemon has ended"
    cookies = [_entered(address.port, invite(paths, who)) for _ in range(SESSIONS)]
    browsers = Child("console_clients", "busy" if quick else "idle", str(address.port), *cookies)
    try:
        found = Stage(daemon, browsers, address.pid)
        found.position = position
        yield found
    finally:
        browsers.close()
        daemon.close()


def _entered(port: int, token: str) -> str:
    """A session's cookie, got as a browser gets it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/enter?token={token}")
    answer = connection.getresponse()
    answer.read()
    cookie = answer.getheader("set-cookie") or ""
    assert answer.status in (200, 303), answer.status
    return cookie.partition(";")[0]


def run(bench: Bench) -> list[Row]:
    """Appends with and without browsers, in turns."""
    count = bench.count(1_000, 100)
    browsers = bench.count(BROWSERS, 10)
    alone: list[list[float]] = []
    among: list[list[float]] = []
    late: list[float] = []
    with stage(bench.folder / "load", quick=bench.quick) as found:
        found.offer(count)
        before = found.processor()
        for turn in range(bench.count(ROUNDS, 1)):
            for followed in (False, True) if turn % 2 == 0 else (True, False):
                if followed:
                    times, delays = found.followed(count, browsers)
                    among.append(times)
                    late += delays
                else:
                    alone.append(found.offer(count))
        cpu = found.processor() - before
        memory = found.memory("VmHWM")
        held = _memory(bench, found)
    rows = []
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        mine = Spread.of([percentile(times, share) * 1e3 for times in among])
        bare = Spread.of([percentile(times, share) * 1e3 for times in alone])
        rows.append(
            Row(
                what=f"append at {RATE:,}/s while {browsers} browsers follow, {name}", figure=mine, unit="ms",
                beside="no browser", limit=bare, ratio=mine.median / bare.median, target="≤ 1.10 of none",
                reached=mine.median <= 1.1 * bare.median,
                note=f"told p50 {percentile(late, 0.5) * 1e3:.0f} ms, p99 {percentile(late, 0.99) * 1e3:.0f} ms later; "
                f"console {cpu:.1f} s of a processor, {memory / MIB:.0f} MiB",
            )
        )  # fmt: skip
    return [*rows, *held]


def _memory(bench: Bench, found: Stage) -> list[Row]:
    """The console's memory while more and more browsers follow, or come back from further and further behind, or do
    not read what they are sent."""
    found.offer(bench.count(LONG, 300), 0)
    none = found.memory()
    sizes = {
        "50 / 200 / 400 browsers that follow": [
            found.caught_up(browsers, bench.count(1_000, 10)) for browsers in _sizes(bench, 50, 200, 400)
        ],
        f"{BEHIND} browsers that are 1,000 / 10,000 / 100,000 events behind": [
            found.caught_up(bench.count(BEHIND, 2), behind) for behind in _sizes(bench, 1_000, 10_000, LONG)
        ],
        "50 / 200 / 400 browsers that do not read": [
            found.unread(browsers) for browsers in _sizes(bench, 50, 200, 400)
        ],
    }  # fmt: skip
    return [
        Row(
            what=f"console's memory, {what}", figure=Spread.of([size / MIB for size in held]), unit="MiB",
            target=f"< {MEMORY_MAX / MIB:.0f} MiB", reached=max(held) < MEMORY_MAX,
            note=" / ".join(f"{size / MIB:.0f}" for size in held) + f" MiB; with none {none / MIB:.0f} MiB",
        )
        for what, held in sizes.items()
    ]  # fmt: skip


def _sizes(bench: Bench, *full: int) -> tuple[int, ...]:
    return tuple(bench.count(size, 3 + n) for n, size in enumerate(full))


if __name__ == "__main__":
    sys.exit("run it by benchmarks/run.py --only console_load")
