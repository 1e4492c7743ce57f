"""A UART between a board and a host, byte by byte at its pace."""

from __future__ import annotations

from collections.abc import Callable

BYTES_PER_MS = 11.52


class Uart:
    """busio.UART: what the host writes is in ``incoming``, what has reached it in ``sent``.

    ``let_pass`` is the clock's: a write waits for what the ``fifo`` does not hold, and time goes by meanwhile.
    """

    def __init__(
        self, let_pass: Callable[[int], None], fifo: int, tx: str, rx: str, *, baudrate: int, timeout: float,
        receiver_buffer_size: int,
    ) -> None:  # fmt: skip
        assert timeout == 0, "it would wait"
        self.pins, self.baudrate, self.size = (tx, rx), baudrate, receiver_buffer_size
        self._let_time_pass = let_pass
        self._fifo = fifo
        self.incoming = bytearray()
        self.sent = bytearray()
        self.lost = 0
        """Bytes for which there was no room."""
        self.longest_ms = 0
        """The longest that a write has waited."""
        self._arrived = bytearray()
        self._leaving = bytearray()
        self._in = self._out = 0.0

    def let_pass(self, milliseconds: int) -> None:
        """So much time has gone by."""
        self._in, self._out = (
            self._move(self.incoming, self._arrived, self._in + milliseconds * BYTES_PER_MS),
            self._move(self._leaving, self.sent, self._out + milliseconds * BYTES_PER_MS),
        )
        over = len(self._arrived) - self.size
        if over > 0:
            del self._arrived[self.size :]
            self.lost += over

    @staticmethod
    def _move(here: bytearray, there: bytearray, bytes_due: float) -> float:
        """Returns what is due of the next byte."""
        count = min(int(bytes_due), len(here))
        there.extend(here[:count])
        del here[:count]
        return bytes_due - count if here else 0.0

    @property
    def in_waiting(self) -> int:
        return len(self._arrived)

    def read(self, size: int) -> bytes | None:
        taken = bytes(self._arrived[:size])
        del self._arrived[:size]
        return taken or None

    def write(self, data: bytes) -> int:
        self._leaving.extend(data)
        waited = 0
        while len(self._leaving) > self._fifo:
            waited += 1
            self._let_time_pass(1)
        self.longest_ms = max(self.longest_ms, waited)
        return len(data)
