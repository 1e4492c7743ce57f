"""The parts of a board, as the firmware's main loop has them in its hands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Pin:
    """A pin: what it reads, or drives."""

    def __init__(self) -> None:
        self.value = False


class UsbLine:
    """The board's end of the line. ``connected`` is asked anew each time; what is ``written`` waits to be fetched, for
    ever while the host does not read (``stuck``)."""

    def __init__(self, connected: Callable[[], bool]) -> None:
        self._connected = connected
        self.arrived = b""
        self.written = b""
        self.stuck = False

    @property
    def connected(self) -> bool:
        """Whether a host holds the line open (DTR)."""
        return self._connected()

    @property
    def in_waiting(self) -> int:
        """Bytes to read."""
        return len(self.arrived)

    @property
    def out_waiting(self) -> int:
        """Bytes that the host has not read."""
        return int(self.stuck)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data, self.arrived = self.arrived[:size], self.arrived[size:]
        return data

    def write(self, data: bytes) -> int:
        """Take bytes for the host."""
        self.written += data
        return len(data)


class Hands:
    """Where reports go: ``take`` says why one was not taken, or nothing."""

    def __init__(self, take: Callable[[tuple[Any, ...]], str]) -> None:
        self.hand_over = take
        self.locked = False

    def caps_lock(self) -> bool:
        """Whether the machine says that Caps Lock is on."""
        return self.locked


class Watchdog:
    """Notes when it was fed last (microseconds)."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.fed_at = now()

    def feed(self) -> None:
        """Not yet."""
        self.fed_at = self._now()
