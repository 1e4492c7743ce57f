"""Processes that are made by fork, so that many rounds take seconds, and killed.

A test starts a module of ``tests.crash`` with ``forks``; that one imports everything once, and forks a child for each
line that it reads (``serve``, ``Fork``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pmagent.events.event import Event
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]
KILLED = -signal.SIGKILL


@contextmanager
def forks(module: str, *arguments: object, environ: Mapping[str, str] | None = None) -> Iterator[
    Callable[..., list[str]]
]:  # fmt: skip
    """Run ``python -I -m tests.crash.MODULE ARGUMENTS`` (``tests.support.warm``); yields a function: the words of a
    line to it -> those of its answer."""
    with warm.Popen(
        [sys.executable, "-I", "-m", f"tests.crash.{module}", *map(str, arguments)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **(environ or {})},
    ) as process:  # fmt: skip
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(*words: object) -> list[str]:
            print(*words, file=stdin, flush=True)
            return str(stdout.readline()).split()

        yield ask
        stdin.close()


def serve(play: Callable[[str], str]) -> None:
    """Answer each line of stdin by one on stdout."""
    for line in sys.stdin:
        os.write(1, f"{play(line.strip())}\n".encode())


class Fork:
    """A child that runs ``act`` with the descriptor that its reports go to; its exit code is 70 if that raises."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self._reports, write_end = os.pipe()
        self._read = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reports)
            try:
                act(write_end)
                os._exit(0)
            finally:  # it never returns
                traceback.print_exc()
                os._exit(70)
        os.close(write_end)

    def has_reported(self, lines: int) -> bool:
        """Wait until it has reported so many lines, which is True, or has ended before."""
        while self._read.count(b"\n") < lines:
            more = os.read(self._reports, 1 << 16)
            if not more:
                return False
            self._read += more
        return True

    def kill(self, seconds: float) -> None:
        """Kill it after so many seconds."""
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> tuple[int, list[str]]:
        """Wait for its end: its exit code, and the whole lines that it has reported."""
        _, status = os.waitpid(self.pid, 0)
        self.has_reported(sys.maxsize)
        os.close(self._reports)
        return os.waitstatus_to_exitcode(status), self._read.decode().split("\n")[:-1]


def kill_at_call(number: int, names: Sequence[str]) -> None:
    """Have this process kill itself ahead of its ``number``-th call of these functions of ``os``."""
    left = [number]

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return called

    for name in names:
        setattr(os, name, deadly(getattr(os, name)))


def signal_at(
    moment: str, report: Callable[[Event], None], number: int = signal.SIGKILL
) -> Callable[[Sequence[Event], Any], None]:
    """A listener of durable events: ``report`` gets each, and this process the signal ``number`` at its Nth event of
    TYPE, where ``moment`` is ``TYPE:N``; else never."""
    kind, _, count = moment.partition(":")
    left = int(count or 0)

    def hear(events: Sequence[Event], _sums: Any) -> None:
        nonlocal left
        for event in events:
            report(event)
            if event.type == kind:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), number)

    return hear
