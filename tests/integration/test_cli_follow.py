"""``log tail -f`` as a process beside a real writer: live, across segments, resumable, and ended in order."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pmagent.events.line import decode_line
from pmagent.workspace.layout import Layout
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, spawn
from tests.support.daemons import running

WRITER = """
import asyncio, sys
from pathlib import Path
from pmagent.events.event import Draft
from tests.support.one_writer import open_log
async def main():
    number = 0
    async with open_log(Path(sys.argv[1]), int(sys.argv[2])) as log:
        for line in sys.stdin:
            for kind in line.split():
                number += 1
                raw = b'{"n":%d}' % number
                event = await log.append(Draft(f"test.{kind}", None, raw, f"f-{number}", "source", "run"))
            sys.stdout.write(f"{event.position}\\n")
            sys.stdout.flush()
asyncio.run(main())
"""


class Writer:
    """A process that appends what it is told to, and answers with the position when that is durable."""

    def __init__(self, workspace: Path, segment_bytes: int) -> None:
        (workspace / ".pmagent").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", WRITER, str(Layout(workspace).log), str(segment_bytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )

    def append(self, *kinds: str) -> int:
        """Append an event ``test.<kind>`` for each; the position of the last."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(kinds) + "\n")
        return int(self.process.stdout.readline())

    def stop(self) -> None:
        """Close the log."""
        self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0


class Tail:
    """A ``pmagent log tail`` process. Whole lines are read; nothing is waited for that does not come."""

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self.process = warm.Popen(
            [*PMAGENT, "log", "tail", *arguments], cwd=workspace, env=clean_environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out, self.err = self.process.stdout, self.process.stderr
        self._out, self._err = self.out.fileno(), self.err.fileno()
        self._rest = {self._out: b"", self._err: b""}

    def line(self) -> str:
        """The next line on stdout."""
        return self._line(self._out)

    def note(self) -> str:
        """The next line on stderr."""
        return self._line(self._err)

    def positions(self, count: int) -> list[int]:
        """The positions of the next lines."""
        return [int(self.line().split()[0]) for _ in range(count)]

    def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Send a signal, if one is given; the exit code and what was left to read."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS)
        return (self.process.returncode, (self._rest[self._out] + out).decode(), (self._rest[self._err] + err).decode())

    def _line(self, descriptor: int) -> str:
        while b"\n" not in self._rest[descriptor]:
            readable, _, _ = select.select([descriptor], [], [], SECONDS)
            more = os.read(descriptor, 65536) if readable else b""
            if not more:
                raise AssertionError(f"no line came: {self.end(signal.SIGKILL)}")
            self._rest[descriptor] += more
        line, _, self._rest[descriptor] = self._rest[descriptor].partition(b"\n")
        return line.decode()


@contextmanager
def writing(workspace: Path, segment_bytes: int = 1 << 20) -> Iterator[Writer]:
    """A writer for the length of a block."""
    writer = Writer(workspace, segment_bytes)
    try:
        yield writer
        writer.stop()
    finally:
        if writer.process.poll() is None:
            writer.process.kill()
            writer.process.communicate(timeout=SECONDS)


@contextmanager
def tailing(workspace: Path, *arguments: str) -> Iterator[Tail]:
    """A tail for the length of a block; killed at its end if it still runs."""
    tail = Tail(workspace, *arguments)
    try:
        yield tail
    finally:
        if tail.process.poll() is None:
            tail.process.kill()
        tail.process.wait(timeout=SECONDS)
        tail.out.close()
        tail.err.close()


def test_it_catches_up_says_so_stays_live_and_ctrl_c_names_the_cursor(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        last = writer.append("a", "b", "c")
        with tailing(tmp_path, "-f") as tail:
            assert tail.positions(4) == [1, 2, 3, 4]
            assert tail.note() == f"— caught up at {last} —"
            for _ in range(3):
                last = writer.append("d")
                assert tail.positions(1) == [last]
            last = writer.append(*["e"] * 500)
            assert tail.positions(500) == list(range(last - 499, last + 1))
            code, out, err = tail.end(signal.SIGINT)
    assert (code, out) == (130, "")
    noted = ["note: no daemon runs", f"— stopped at {last}; go on with: pmagent log tail --after {last} —"]
    assert err.splitlines() == noted


def test_the_cursor_resumes_without_a_gap_or_a_repetition(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        writer.append(*["a"] * 10)
        with tailing(tmp_path, "-f", "--format", "json", "-n", "all") as tail:
            seen = [tail.line() for _ in range(11)]
            assert "caught up" in tail.note()
            cursor = int(tail.end(signal.SIGINT)[2].split("stopped at ")[1].split(";")[0])
        writer.append(*["b"] * 10)
        with tailing(tmp_path, "-f", "--format", "json", "--after", str(cursor)) as tail:
            seen += [tail.line() for _ in range(10)]
            writer.append("c")
            seen.append(tail.line())
    stored = b"".join(file.read_bytes() for file in sorted(Layout(tmp_path).log.glob("*.jsonl")))
    assert "\n".join(seen) + "\n" == stored.decode()


def test_it_follows_across_segment_rolls(tmp_path: Path) -> None:
    with writing(tmp_path, segment_bytes=2000) as writer:
        writer.append("a")
        with tailing(tmp_path, "-f", "-n", "0") as tail:
            assert "caught up at 2" in tail.note()
            for round_ in range(5):
                last = writer.append(*["a"] * 20)
                assert tail.positions(20) == list(range(last - 19, last + 1)), round_
    assert len(list(Layout(tmp_path).log.glob("*.jsonl"))) > 5


def test_filters_hold_live(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        writer.append("a", "b")
        with tailing(tmp_path, "-f", "--type", "test.*", "--exclude", "test.b", "data.n=3", "data.n=6") as tail:
            assert "caught up" in tail.note()
            writer.append("a", "b", "b", "a", "b")
            assert ["• test.a " in tail.line() for _ in range(2)] == [True, True]
            code, out, _ = tail.end(signal.SIGINT)
    assert (code, out) == (130, "")


def test_exit_on_ends_it_with_0_right_behind_the_event(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        writer.append("a")
        with tailing(tmp_path, "-f", "-n", "0", "--exit-on", "test.don*", "--show-cursor") as tail:
            assert "caught up" in tail.note()
            last = writer.append("a", "done", "a")
            code, out, err = tail.end()
    assert code == 0
    assert [int(line.split()[0]) for line in out.splitlines()] == [last - 2, last - 1]
    assert err.splitlines()[-1] == f"— cursor {last - 1} —"


def test_a_reader_that_goes_away_ends_it_silently_though_nothing_happens(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        writer.append("a")
        with tailing(tmp_path, "-f") as tail:
            assert ("caught up" in tail.note(), tail.note()) == (True, "note: no daemon runs")
            tail.out.close()
            assert tail.process.wait(timeout=SECONDS) in (0, 141)
            assert tail.err.read() == b""


def test_a_slow_reader_slows_no_writer_and_misses_nothing(tmp_path: Path) -> None:
    """The follower's pipe is full and nobody reads it; the writer's appends are durable all the same."""
    with writing(tmp_path) as writer:
        writer.append("a")
        with tailing(tmp_path, "-f", "--format", "json") as tail:
            assert "caught up at 2" in tail.note()
            for _ in range(10):
                last = writer.append(*["x" * 100] * 200)
            seen = [decode_line(tail.line().encode()).position for _ in range(last)]
    assert seen == list(range(1, last + 1))


def test_what_a_daemon_does_is_seen_as_it_happens(workspace: Path) -> None:
    """Filtered by type: the reading of the surfaces that its start asks for may come before or behind."""
    booted = ("--type", "oa.boot*", "--type", "oa.session*", "--exit-on", "oa.session_booted")
    with running(workspace), tailing(workspace, "-f", "-n", "0", *booted) as tail:
        assert "caught up" in tail.note()
        assert spawn("boot", "oa", cwd=workspace).code == 0
        code, out, _ = tail.end()
    assert code == 0
    assert re.findall(r"oa\.\w+", out)[:1] == ["oa.boot_requested"]
    assert len(out.splitlines()) == 2
    assert " oa.session_booted " in out.splitlines()[1]


def test_the_example_of_up_runs_until_a_signal(workspace: Path) -> None:
    up = warm.Popen(
        [*PMAGENT, "up"], cwd=workspace, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )
    assert up.stderr is not None
    try:
        said = ""
        while "ready;" not in said:
            line = up.stderr.readline()
            assert line, said
            said += line
        status = spawn("status", "--require-daemon", "--format", "json", cwd=workspace)
        assert status.code == 0, status.errors
        assert status.document["running"] is True
        up.send_signal(signal.SIGINT)
        out, err = up.communicate(timeout=SECONDS)
    finally:
        up.kill()
    assert (up.returncode, out) == (0, ""), said + err
    assert "Traceback" not in said + err
