"""Whether the daemon answers, asked beside other work by who reads the log and waits for nobody (docs/design.md
§11.2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from pmagent.events.event import format_time
from pmagent.when import short
from pmagent.workspace.layout import Layout, reachable

if TYPE_CHECKING:
    import socket

SILENT_SECONDS: Final = 1.5
"""A daemon that says nothing for so long does not answer; it says something every ``wire.BEAT_SECONDS``. With what a
command takes to start, or with ``ASK_SECONDS``, people know within 3 s."""
ASK_SECONDS: Final = 0.5
"""The pause between an answer and the next question."""

_QUESTION: Final = b'{"operation":"status","arguments":{},"heartbeat":true}\n'

State = Literal["unknown", "none", "answers", "silent"]


class Liveness:
    """Asks the daemon of a workspace, and looks later whether it has answered. ``state``: whether there is one, and it
    answers; ``text``: the same in words. ``clock`` counts seconds. To be closed at the end."""

    def __init__(self, layout: Layout, clock: Callable[[], float] = time.monotonic) -> None:
        self.state: State = "unknown"
        self.text = ""
        self._layout = layout
        self._clock = clock
        self._asked: socket.socket | None = None
        self._began = 0.0
        self._next = 0.0
        self._heard = _now()

    def look(self, *, wait: bool = False) -> bool:
        """Ask if it is time to, and take what has come; whether there is news: ``state`` has changed, but for a daemon
        that is there and answers at once. ``wait``: until it has answered, or counts as silent. Raises OSError."""
        before = self.state
        if self._asked is not None or self._clock() >= self._next:
            self._look()
        while wait and self._asked is not None and self.state != "silent":
            self._await(self._asked)
            self._look()
        return self.state != before and (before, self.state) != ("unknown", "answers")

    def close(self) -> None:
        """Wait for no answer any more, and forget what was known."""
        self.state = "unknown"
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    def _look(self) -> None:
        holder = self._layout.store.holder()
        if not holder.live or holder.role != "daemon" or holder.elsewhere:
            self._end("none", "no daemon runs" if self.state == "unknown" else "the daemon is gone")
            return
        if self._asked is None:
            self._began = self._clock()
            try:
                self._asked = self._ask()
            except (FileNotFoundError, ConnectionError):  # it is starting, or stopping
                self._next = self._began + ASK_SECONDS
                return
            except BlockingIOError:  # so many wait already that no more can
                self._silent(holder.note)
                return
        with suppress(BlockingIOError):
            try:
                answered = bool(self._asked.recv(1))
            except ConnectionError:
                answered = False
            back = "the daemon answers again" if self.state == "silent" else "the daemon is back"
            self._end("answers" if answered else self.state, back if answered else self.text)
            return
        if self._clock() - self._began >= SILENT_SECONDS:
            self._silent(holder.note)

    def _ask(self) -> socket.socket:
        import socket

        asked = socket.socket(socket.AF_UNIX)
        try:
            asked.settimeout(0)
            with reachable(self._layout.socket) as address:
                asked.connect(address)
            asked.sendall(_QUESTION)
        except BaseException:
            asked.close()
            raise
        return asked

    def _await(self, asked: socket.socket) -> None:
        import select

        select.select([asked], [], [], max(0.0, self._began + SILENT_SECONDS - self._clock()))

    def _silent(self, note: str) -> None:
        self.state, self.text = "silent", f"the daemon does not answer ({note}, since {short(self._heard)} UTC)"

    def _end(self, state: State, text: str) -> None:
        """The question is over."""
        self.close()
        self.state, self.text = state, text
        self._next = self._clock() + ASK_SECONDS
        if state == "answers":
            self._heard = _now()


def _now() -> str:
    return format_time(datetime.now(UTC))
