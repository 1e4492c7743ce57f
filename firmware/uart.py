"""The line over a UART: a serial line without a plug of its own, for typing on another machine than the host's."""

from .core import TICKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from busio import UART

BAUD = 115_200
BYTES_PER_MS = 11
"""That leave for certain: ten bits each."""
PIECE = 32
"""Bytes that are written at once: the chip's own buffer takes as many without waiting, and one that has none is done
with them in 3 ms."""
RECEIVED_MAX = 4096
"""Bytes that wait to be read: two lines. Any more are lost, which the line's checksum shows."""


class UartLine:
    """A UART (``timeout`` 0) as the loop uses its line. Nothing tells whether a host is at the other end."""

    connected = True

    def __init__(self, uart: "UART", ticks_ms: "Callable[[], int]") -> None:
        self._uart = uart
        self._ticks_ms = ticks_ms
        self._written = self._written_at = 0

    @property
    def in_waiting(self) -> int:
        """Bytes that have come."""
        return self._uart.in_waiting

    @property
    def out_waiting(self) -> int:
        """Bytes that may not have left yet. The UART does not tell; the clock does."""
        passed = (self._ticks_ms() - self._written_at) % TICKS - 1  # the millisecond of writing may have been short
        return max(0, self._written - max(0, passed) * BYTES_PER_MS)

    def read(self, size: int) -> bytes:
        """At most ``size`` of the bytes that have come."""
        return self._uart.read(size) or b""

    def write(self, data: bytes) -> None:
        """Write a piece, when none is waiting."""
        self._uart.write(data)
        self._written, self._written_at = len(data), self._ticks_ms()
