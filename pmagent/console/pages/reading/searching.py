"""Events picked by the log page's filters, without letting an expression stop the console (threat: catastrophic ones).

Python's ``re`` may take for ever on a short text, cannot be interrupted in a thread, and holds the interpreter
meanwhile. So expressions are held against texts in a process of their own, which is killed when it takes too long.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

import msgspec

from pmagent.events.event import StoredEvent
from pmagent.log.query import Query, compiled, text_of
from pmagent.log.ranges import Pick, TooSlow

TEXTS_SECONDS: Final = 2.0
"""So long may an expression take on the texts that are given at once."""

_BATCH: Final = 64
"""So many texts are given at once: of what is found in them nothing is told when one of them takes too long."""
_COMMAND: Final = (sys.executable, "-I", "-m", "pmagent.console.pages.reading.search_child")


@contextmanager
def picking(query: Query, seconds: float | None = None) -> Iterator[Pick]:
    """A function that picks the events that ``query`` wants; blocking, for one thread at a time. It raises TooSlow when
    the expression takes longer than ``seconds`` (None: ``TEXTS_SECONDS``) on a few texts, or no process can be started
    for it, and is of no use afterwards.

    Raises BadFilter.
    """
    compiled(query)  # what is wrong with the expression is told here, and not by a process
    matches = compiled(msgspec.structs.replace(query, grep=""))
    if not query.grep:
        yield lambda events: [*filter(matches, events)]
        return
    with _Expression(query.grep, TEXTS_SECONDS if seconds is None else seconds) as found:
        yield lambda events: found.among([*filter(matches, events)])


class _Expression:
    """The process that holds one expression."""

    def __init__(self, expression: str, seconds: float) -> None:
        self._expression = expression
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.__exit__(None, None, None)

    def among(self, events: Sequence[StoredEvent]) -> list[StoredEvent]:
        """Those of ``events`` in whose text it is found. Raises TooSlow."""
        found: list[StoredEvent] = []
        for start in range(0, len(events), _BATCH):
            part = events[start : start + _BATCH]
            found += [part[index] for index in self._asked([text_of(event) for event in part])]
        return found

    def _asked(self, texts: list[str]) -> list[int]:
        process = self._process or self._started()
        deadline = time.monotonic() + self._seconds  # how late the process began says nothing of the expression
        assert process.stdin is not None, "made with a pipe"
        assert process.stdout is not None, "made with a pipe"
        self._move(process.stdin.fileno(), json.dumps(texts).encode() + b"\n", deadline)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            self._wait(process.stdout.fileno(), select.POLLIN, deadline)
            piece = os.read(process.stdout.fileno(), 65_536)
            if not piece:
                raise self._too_slow()  # its own limits have ended it
            answer += piece
        indexes: list[int] = json.loads(answer)
        return indexes

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/", bufsize=0,
                env={}, process_group=0,
            )  # fmt: skip
        except OSError as error:
            what = f"no process can be started that looks for the expression: {error.strerror or type(error).__name__}"
            raise TooSlow(what, "mend that, and try again") from error
        self._process = process
        assert process.stdin is not None, "made with a pipe"
        os.set_blocking(process.stdin.fileno(), False)
        begun = time.monotonic() + self._seconds + _START_SECONDS
        self._move(process.stdin.fileno(), json.dumps(self._expression).encode() + b"\n[]\n", begun)
        assert process.stdout is not None, "made with a pipe"
        self._wait(process.stdout.fileno(), select.POLLIN, begun)
        os.read(process.stdout.fileno(), 64)
        return process

    def _move(self, descriptor: int, data: bytes, deadline: float) -> None:
        while data:
            self._wait(descriptor, select.POLLOUT, deadline)
            try:
                data = data[os.write(descriptor, data) :]
            except BrokenPipeError:
                raise self._too_slow() from None

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise self._too_slow()

    def _too_slow(self) -> TooSlow:
        what = f"the expression {self._expression[:200]!r} takes too long (or too much memory)"
        return TooSlow(what, "a simpler one; pmagent log tail --grep takes the time that it takes")


_START_SECONDS: Final = 20.0
"""A process begins late on a machine that has much to do."""


def until(seconds: float) -> Callable[[], bool]:
    """Says whether less than ``seconds`` have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end
