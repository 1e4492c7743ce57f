"""The daemon's side of its drafter: the process that makes facts of lines while the daemon judges (docs/guests.md).

It is started when many hooks ask at once, and ends with the daemon. Whatever happens to it, nothing is lost: what it
has not answered is given back, and the daemon does without it for a while.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from pmagent.events.errors import PmagentError
from pmagent.guests.answering import Hook
from pmagent.guests.drafting import SIZE_BYTES, Batch, Begin, Drafted, framed

HOOKS_MIN: Final = 8
"""Fewer are answered sooner without it."""
BATCHES_MAX: Final = 2
"""So many batches are with it at most; what comes meanwhile the daemon does itself."""
BATCH_BYTES_MAX: Final = 64 * 1024
"""So much goes to it at once, which a socket takes whole."""
ANSWER_SECONDS: Final = 2.0
"""It is given up if it takes longer for a batch."""
START_SECONDS: Final = 60.0
"""It is given up if it takes longer to start."""
REST_SECONDS: Final = 60.0
"""So long after an end that was not asked for no other one is started."""
_CHUNK: Final = 1 << 20

COMMAND: Final = (sys.executable, "-I", "-m", "pmagent.guests.drafting")

Ready = Callable[[Sequence[Hook], Sequence[Drafted | None]], None]
"""Hears the facts of these hooks' lines. None: the hook is to be answered by itself."""

_decode: Final = msgspec.msgpack.Decoder(list[Drafted | None]).decode
_log = structlog.get_logger("pmagent")


class Drafter:
    """For one event loop. ``begin`` makes its first message; raises PmagentError, OSError. ``command`` starts it, with
    the number of its descriptor behind it."""

    def __init__(self, begin: Callable[[], Begin], ready: Ready, command: Sequence[str] = COMMAND) -> None:
        self._begin = begin
        self._ready = ready
        self._command = command
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._ours: socket.socket | None = None
        self._content = bytearray()
        self._starting: asyncio.TimerHandle | None = None
        self._waiting: deque[tuple[Sequence[Hook], asyncio.TimerHandle]] = deque()
        self._rests_until = 0.0

    def takes(self, hooks: Sequence[Hook], cedar: Sequence[Path] | None) -> bool:
        """Have it make the facts of these hooks' lines, of which ``ready`` hears; False: it does not."""
        if not (len(hooks) >= HOOKS_MIN and len(self._waiting) < BATCHES_MAX and self._runs()):
            return False
        lines = [one.line for one in hooks]
        content = framed(Batch(lines, None if cedar is None else [*map(str, cedar)]))
        if len(content) > BATCH_BYTES_MAX or self._ours is None:
            return False
        try:
            sent = self._ours.send(content)
        except OSError:
            sent = 0
        if sent < len(content):
            self._give_up("it takes nothing")
            return False
        self._waiting.append((hooks, self._loop.call_later(ANSWER_SECONDS, self._give_up, "it does not answer")))
        return True

    def _runs(self) -> bool:
        """Whether it runs; it is started where it may."""
        if self._ours is None and self._loop.time() >= self._rests_until and len(os.sched_getaffinity(0)) > 1:
            try:
                self._start()
            except (OSError, PmagentError) as error:
                self._give_up(f"it cannot be started: {error}")
        return self._ours is not None and self._starting is None

    def _start(self) -> None:
        first = framed(self._begin())
        self._ours, its = socket.socketpair()
        self._ours.settimeout(0)
        with its:
            self._process = subprocess.Popen(
                [*self._command, str(its.fileno())], pass_fds=(its.fileno(),), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True,  # a terminal's Ctrl-C is the daemon's
            )  # fmt: skip
        self._loop.add_reader(self._ours, self._receive)
        self._starting = self._loop.call_later(START_SECONDS, self._give_up, "it does not start")
        self._ours.sendall(first)  # a new connection takes it whole

    def _receive(self) -> None:
        assert self._ours is not None, "watched only while it is open"
        try:
            part = self._ours.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        self._content += part
        while len(self._content) >= SIZE_BYTES:
            end = SIZE_BYTES + int.from_bytes(self._content[:SIZE_BYTES], "big")
            if len(self._content) < end:
                break
            message = bytes(self._content[SIZE_BYTES:end])
            del self._content[:end]
            self._answered(message)
        if not part and self._ours is not None:
            self._give_up("it has ended")

    def _answered(self, message: bytes) -> None:
        found: list[Drafted | None] = []
        with suppress(msgspec.MsgspecError):
            found = _decode(message)
        if self._starting is not None and not found:
            self._starting.cancel()
            self._starting = None
            return
        if not self._waiting or len(found) != len(self._waiting[0][0]):
            self._give_up("its answer is none")
            return
        hooks, late = self._waiting.popleft()
        late.cancel()
        self._ready(hooks, found)

    def _give_up(self, why: str) -> None:
        """Do without it for a while; whoever waits for it is answered by themselves."""
        _log.warning("the drafter is given up", why=why)
        self._rests_until = self._loop.time() + REST_SECONDS
        waiting = [*self._waiting]
        self.close()
        for hooks, _ in waiting:
            self._ready(hooks, [None] * len(hooks))

    def close(self) -> None:
        """End it."""
        if self._ours is not None:
            self._loop.remove_reader(self._ours)
            self._ours.close()
            self._ours = None
        for _, late in self._waiting:
            late.cancel()
        self._waiting.clear()
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        self._content.clear()
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            threading.Thread(target=process.wait, daemon=True).start()  # a file that never answers may hold it
